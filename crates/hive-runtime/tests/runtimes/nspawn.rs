//! `nspawn`: only root can make such a container.

use crate::place::Kind;

crate::promises!(Kind::Nspawn);
crate::escape::attempts_of!(Kind::Nspawn);
