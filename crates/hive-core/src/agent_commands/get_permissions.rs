//! `get_permissions`: what the caller may do (C14).

use hive_wire::agent::{GetPermissions, Granted};

use crate::{permissions::Grants, server::Reply};

pub(super) fn run(GetPermissions {}: GetPermissions, grants: &Grants, reply: Reply<Granted>) {
    reply.send(Ok(grants.shown()));
}
