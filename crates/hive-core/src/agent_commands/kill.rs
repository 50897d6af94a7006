//! `kill`: stops a child and leaves it stopped (M11).

use hive_wire::agent::{ChildState, Kill};

use super::{Caller, children, once::Once};
use crate::{server::Reply, supervisor::Wish};

pub(super) fn run(caller: &Caller, command: Kill, reply: Reply<ChildState>) {
    let once = Once::of(&command, command.key.as_ref());
    children::wish(caller, command.name, Wish::Stop, once, reply);
}
