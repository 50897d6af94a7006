//! The client side that every raw peer shares: a unix stream that is watched for input only, one
//! reused buffer, one reply at a time. There is no typed client in between, so that what is measured
//! is the peer.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use hive_wire::stream::Stream;
use tokio::net::UnixStream;

/// More than any reply of the benchmark; a peer that exceeds it has gone wrong.
const MAX_REPLY: usize = 1 << 20;

/// A connection on which at most one reply is outstanding.
#[derive(Debug)]
pub(crate) struct Conn {
    stream: Stream,
    reply: Vec<u8>,
}

impl Conn {
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(short(path))
            .await
            .and_then(Stream::new)
            .with_context(|| format!("cannot connect to {}", path.display()))?;
        Ok(Self {
            stream,
            reply: Vec::with_capacity(8 << 10),
        })
    }

    pub(crate) async fn write(&mut self, request: &[u8]) -> Result<()> {
        let mut rest = request;
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.writable().await?;
                }
                Err(error) => return Err(error).context("cannot write a request"),
            }
        }
        Ok(())
    }

    /// The next reply, read until `complete` says that the buffer holds all of it.
    pub(crate) async fn read(&mut self, complete: impl Fn(&[u8]) -> bool) -> Result<&[u8]> {
        self.reply.clear();
        while !complete(&self.reply) {
            if self.reply.len() > MAX_REPLY {
                bail!("a reply of more than {MAX_REPLY} bytes");
            }
            let read = self
                .stream
                .read_with(|bytes| self.reply.extend_from_slice(bytes))
                .await
                .context("cannot read a reply")?;
            if read == 0 {
                bail!("the peer closed the connection");
            }
        }
        Ok(&self.reply)
    }

    /// The next reply of a protocol of lines.
    pub(crate) async fn read_line(&mut self) -> Result<&[u8]> {
        self.read(|reply| reply.last() == Some(&b'\n')).await
    }
}

/// A path that fits in a socket address: a link in place of a long path is followed first.
fn short(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
