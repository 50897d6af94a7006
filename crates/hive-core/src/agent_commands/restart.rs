//! `restart`: stops a child and starts it again (M11).

use hive_wire::agent::{ChildState, Restart};

use super::{Caller, children, once::Once};
use crate::{server::Reply, supervisor::Wish};

pub(super) fn run(caller: &Caller, command: Restart, reply: Reply<ChildState>) {
    let once = Once::of(&command, command.key.as_ref());
    children::wish(caller, command.name, Wish::Restart, once, reply);
}
