//! `bwrap`: what is special about bubblewrap.

use crate::{place::Kind, user::run_as_user};

crate::promises!(Kind::Bwrap);

#[test]
fn as_an_ordinary_user_every_promise_holds() {
    run_as_user("bwrap::");
}
