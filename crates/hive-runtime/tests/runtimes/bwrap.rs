//! `bwrap`: what is special about bubblewrap.

use hive_runtime::conformance::run_as_user;

use crate::place::Kind;

crate::promises!(Kind::Bwrap);
crate::escape::attempts_of!(Kind::Bwrap);

#[test]
fn as_an_ordinary_user_every_promise_holds() {
    run_as_user("bwrap::");
}
