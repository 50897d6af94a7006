//! The content of requests: kept before the request is written down, dropped when none needs it.
//!
//! Two requests may ask for the same and share what is kept. So content is only ever dropped by
//! looking at all that is needed, and never between keeping it and writing its request down.

use hive_wire::WireError;

use super::{Approvals, storage};
use crate::{broker::Desk, repos::Tree};

impl Approvals {
    /// Keeps content, writes down what needs it, and drops what nothing needs: this too, if it was
    /// refused.
    ///
    /// # Errors
    /// When it cannot be kept; what `write_down` refuses with.
    pub(super) async fn keep<T: Send + 'static>(
        &self,
        hash: &str,
        tree: Tree,
        write_down: impl FnOnce(&mut Desk<'_>) -> Result<T, WireError> + Send + 'static,
    ) -> Result<T, WireError> {
        let _alone = self.keeping.lock().await;
        let hash = hash.to_owned();
        self.on_disk(move |repos| {
            let kept = repos.keep_request(&hash, &tree);
            kept.map_err(|error| storage(&error))
        })
        .await?;
        let written = self.broker.run(write_down).await;
        self.sweep().await;
        written
    }

    /// Drops the content that no request needs.
    pub(super) async fn drop_unneeded(&self) {
        let _alone = self.keeping.lock().await;
        self.sweep().await;
    }

    /// The same for one who holds `keeping`.
    async fn sweep(&self) {
        let Ok(needed) = self.broker.run(needed).await else {
            return;
        };
        let dropped = self.on_disk(move |repos| {
            let kept = repos.kept_requests().into_iter();
            kept.filter(|hash| !needed.contains(hash))
                .for_each(|hash| repos.drop_request(&hash));
            Ok(())
        });
        if let Err(error) = dropped.await {
            tracing::warn!(%error, "cannot drop what requests asked for");
        }
    }
}

/// The hashes that requests still need.
fn needed(desk: &mut Desk<'_>) -> Result<Vec<String>, WireError> {
    desk.store(|tx| {
        let mut open = tx.pending_approvals()?;
        open.extend(tx.approvals_to_carry_out()?);
        Ok(open.into_iter().map(|one| one.request.hash).collect())
    })
}
