//! The daemon's socket: who may connect, how many, and one answer per line.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
    sync::Arc,
    time::Duration,
};

use hive_wire::{
    ErrorCode, WireError,
    command::{Head, RequestId, encode_reply},
    line::{LineBuffer, LineTooLong, MAX_LINE},
};
use serde::Serialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    supervise::Supervisor,
    wire::{Noted, Request},
};

/// How many connections are served at once.
const MAX_CONNECTIONS: usize = 32;
/// How many requests of one connection are under way at once.
const MAX_REQUESTS: usize = 32;
/// How the name of the directory begins in which a socket gets its mode.
const PRIVATE: &str = ".b-";
/// How long a peer has to read why it is cut off.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Binds the socket for its owner alone: it has its mode before it has its name.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    if let Err(error) = remove_leftovers(dir) {
        tracing::warn!(%error, dir = %dir.display(), "cannot remove what killed daemons left");
    }
    // With `/s` no longer than `bash.sock`: paths of sockets are short.
    let private = tempfile::Builder::new()
        .prefix(PRIVATE)
        .rand_bytes(4)
        .tempdir_in(dir)?;
    let unnamed = private.path().join("s");
    let listener = UnixListener::bind(&unnamed)?;
    fs::set_permissions(&unnamed, fs::Permissions::from_mode(0o600))?;
    fs::rename(&unnamed, path)?;
    Ok(listener)
}

/// Removes the private directories of daemons that were killed before their socket had its name.
fn remove_leftovers(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(PRIVATE.as_bytes()) && entry.file_type()?.is_dir() {
            // What holds anything but a socket is not such a directory, and stays.
            fs::remove_file(entry.path().join("s")).ok();
            fs::remove_dir(entry.path()).ok();
        }
    }
    Ok(())
}

/// Serves every connection until `stop`.
pub(crate) async fn serve(
    listener: UnixListener,
    supervisor: Arc<Supervisor>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else {
            return;
        };
        // An accept that is dropped leaves the connection in the backlog.
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = Connection {
                    supervisor: Arc::clone(&supervisor),
                    tasks: tasks.clone(),
                };
                let stop = stop.clone();
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        ended = connection.serve(stream) => if let Err(error) = ended {
                            tracing::debug!(%error, "a connection ended");
                        }
                    }
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

#[derive(Clone)]
struct Connection {
    supervisor: Arc<Supervisor>,
    tasks: TaskTracker,
}

impl Connection {
    /// Reads requests and answers each when it is ready. When the peer goes, what waits for it goes.
    async fn serve(self, stream: UnixStream) -> io::Result<()> {
        let (mut read, mut write) = stream.into_split();
        let (answers, mut ready) = mpsc::channel::<Vec<u8>>(MAX_REQUESTS);
        let mut lines = LineBuffer::new(MAX_LINE);
        let mut requests = JoinSet::new();
        loop {
            let room = requests.len() < MAX_REQUESTS;
            tokio::select! {
                Some(answer) = ready.recv() => write.write_all(&answer).await?,
                Some(_) = requests.join_next(), if !requests.is_empty() => {}
                // `read_buf` takes nothing when it is dropped.
                count = read.read_buf(lines.room()), if room => {
                    if count? == 0 {
                        return Ok(());
                    }
                    loop {
                        let line = match lines.next_line() {
                            Ok(Some(line)) => line,
                            Ok(None) => break,
                            Err(error) => return cut_off(read, write, error).await,
                        };
                        let (this, line) = (self.clone(), line.to_vec());
                        let answers = answers.clone();
                        requests.spawn(async move {
                            // Nobody to answer: the connection is gone.
                            answers.send(this.answer(&line).await).await.ok();
                        });
                    }
                }
            }
        }
    }

    async fn answer(&self, line: &[u8]) -> Vec<u8> {
        let (id, request) = match Head::parse(line) {
            Ok(head) => (head.id.clone(), Request::parse(&head.cmd, line)),
            Err(error) => return encode_reply::<()>(Err(&error), None),
        };
        let id = id.as_ref();
        match request {
            Err(error) => encode_reply::<()>(Err(&error), id),
            Ok(Request::Seen(seen)) => {
                let seen = self.supervisor.table.seen(seen.task);
                reply(seen.map(|()| Noted {}), id)
            }
            Ok(Request::Status(status)) => {
                let table = &self.supervisor.table;
                reply(table.wait(status.task, status.wait_seconds).await, id)
            }
            Ok(Request::Run(run)) => {
                if self.supervisor.stop.is_cancelled() {
                    let error = WireError::new(ErrorCode::ShuttingDown, "the daemon is stopping");
                    return encode_reply::<()>(Err(&error), id);
                }
                let record = match self.supervisor.table.create(&run) {
                    Ok(record) => record,
                    Err(error) => return encode_reply::<()>(Err(&error), id),
                };
                let task = record.id;
                let supervisor = Arc::clone(&self.supervisor);
                self.tasks
                    .spawn(async move { supervisor.run(record).await });
                let table = &self.supervisor.table;
                reply(table.wait(task, run.wait_seconds).await, id)
            }
        }
    }
}

/// Tells a peer that its line is too long and hangs up. What it still sends is thrown away, so that
/// it reads this before it finds the connection closed.
async fn cut_off(
    mut read: OwnedReadHalf,
    mut write: OwnedWriteHalf,
    error: LineTooLong,
) -> io::Result<()> {
    let error = WireError::new(ErrorCode::LineTooLong, error.to_string())
        .hint("put what is long into a file and name that in the command");
    let answer = encode_reply::<()>(Err(&error), None);
    let last_word = async {
        write.write_all(&answer).await?;
        write.shutdown().await?;
        tokio::io::copy(&mut read, &mut tokio::io::sink()).await
    };
    match tokio::time::timeout(LAST_WORD, last_word).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

fn reply<R: Serialize>(outcome: Result<R, WireError>, id: Option<&RequestId>) -> Vec<u8> {
    encode_reply(outcome.as_ref(), id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_left_of_daemons_that_were_killed_while_binding_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, bound) = (dir.path().join(".b-aaaa"), dir.path().join(".b-bbbb"));
        let foreign = dir.path().join(".b-full");
        for made in [&empty, &bound, &foreign] {
            fs::create_dir(made).unwrap();
        }
        drop(UnixListener::bind(bound.join("s")).unwrap());
        fs::write(foreign.join("file"), "").unwrap();
        let listener = bind(&dir.path().join("bash.sock")).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, [".b-full", "bash.sock"]);
        drop(listener);
    }
}
