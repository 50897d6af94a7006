//! `update_all`: makes every agent anew that was made with another revision of the hive (C11).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{UpdateAll, Updated},
};

use super::Host;
use crate::updates;

pub(crate) async fn run(host: Arc<Host>, UpdateAll {}: UpdateAll) -> Result<Updated, WireError> {
    updates::update_all(&host).await
}
