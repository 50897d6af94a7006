//! `start`: starts a child that is stopped or failed (M11).

use hive_wire::agent::{ChildState, Start};

use super::{Caller, children, once::Once};
use crate::{server::Reply, supervisor::Wish};

pub(super) fn run(caller: &Caller, command: Start, reply: Reply<ChildState>) {
    let once = Once::of(&command, command.key.as_ref());
    children::wish(caller, command.name, Wish::Start, once, reply);
}
