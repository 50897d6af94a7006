//! A socket that is listened on: bound privately, counted, and gone when its owner is.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::Arc,
};

use hive_wire::{ErrorCode, WireError, command::encode_reply, socket};
use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::connection::{LARGE_LINES, Limits, Service, Shared, serve};

/// A bound socket with its accept loop.
#[derive(Debug)]
pub(crate) struct Listener {
    path: PathBuf,
    stop: CancellationToken,
}

impl Listener {
    /// Binds `path` and serves every connection until the listener is stopped. A socket that an
    /// earlier daemon left behind is replaced, so that peers find the new one at the same path.
    pub(crate) fn start<S: Service>(
        path: &Path,
        service: S,
        limits: Limits,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> io::Result<Self> {
        let listener = bind(path)?;
        let shared = Arc::new(Shared {
            service,
            limits,
            large_lines: Semaphore::new(LARGE_LINES),
        });
        tasks.spawn(accept(listener, shared, tasks.clone(), stop.clone()));
        Ok(Self {
            path: path.to_path_buf(),
            stop,
        })
    }

    /// Ends the accept loop and its connections, and takes the socket away.
    pub(crate) fn remove(self) {
        self.stop.cancel();
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a socket");
        }
    }
}

/// Binds in a directory that is private already, so that there is no moment at which others could
/// connect; the mode is set all the same. Who may enter the directory by its group may use the
/// socket: that is how an agent with a user of its own is let in.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    let dir = path.parent().unwrap_or(Path::new("/")).canonicalize()?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let real = dir.join(name);
    let address = if socket::fits(path) { path } else { &real };
    match fs::remove_file(address) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(address)?;
    let around = fs::metadata(&dir)?;
    let mode = if around.mode() & 0o010 == 0 {
        0o600
    } else {
        chown(address, None, Some(around.gid()))?;
        0o660
    };
    fs::set_permissions(address, fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

async fn accept<S: Service>(
    listener: UnixListener,
    shared: Arc<Shared<S>>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let seats = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        // Cancel-safe: an accept that is dropped leaves the connection in the backlog.
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // Out of descriptors: give those that end a moment.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else {
            turn_away(stream, shared.limits.connections).await;
            continue;
        };
        let (shared, stop) = (Arc::clone(&shared), stop.clone());
        tasks.spawn(async move {
            serve(stream, &shared, &stop).await;
            drop(seat);
        });
    }
}

/// Tells a peer that there is no room for it. One short write to a fresh socket does not block.
async fn turn_away(mut stream: UnixStream, limit: usize) {
    let error = WireError::new(
        ErrorCode::LimitReached,
        format!("this socket has {limit} connections, which is the most it takes"),
    )
    .hint("close some, or send several requests over one with ids");
    if let Err(error) = stream
        .write_all(&encode_reply::<()>(Err(&error), None))
        .await
    {
        tracing::debug!(%error, "a peer without a seat did not wait for the reason");
    }
}
