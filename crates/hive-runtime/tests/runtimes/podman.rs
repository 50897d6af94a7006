//! `podman`, with and without root.

use hive_runtime::conformance::run_as_user;

use crate::place::Kind;

crate::promises!(Kind::Podman);
crate::escape::attempts_of!(Kind::Podman);

#[test]
fn as_an_ordinary_user_every_promise_holds() {
    run_as_user("podman::");
}
