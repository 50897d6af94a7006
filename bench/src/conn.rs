//! The client side that every raw peer shares: a unix stream, one reused buffer, one reply at a
//! time. There is no typed client in between, so that what is measured is the peer.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

/// More than any reply of the benchmark; a peer that exceeds it has gone wrong.
const MAX_REPLY: usize = 1 << 20;

/// A connection on which at most one reply is outstanding.
#[derive(Debug)]
pub(crate) struct Conn {
    stream: UnixStream,
    reply: Vec<u8>,
}

impl Conn {
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(short(path))
            .await
            .with_context(|| format!("cannot connect to {}", path.display()))?;
        Ok(Self {
            stream,
            reply: Vec::with_capacity(8 << 10),
        })
    }

    pub(crate) async fn write(&mut self, request: &[u8]) -> Result<()> {
        self.stream
            .write_all(request)
            .await
            .context("cannot write a request")
    }

    /// The next reply, read until `complete` says that the buffer holds all of it.
    pub(crate) async fn read(&mut self, complete: impl Fn(&[u8]) -> bool) -> Result<&[u8]> {
        self.reply.clear();
        while !complete(&self.reply) {
            if self.reply.len() > MAX_REPLY {
                bail!("a reply of more than {MAX_REPLY} bytes");
            }
            if self
                .stream
                .read_buf(&mut self.reply)
                .await
                .context("cannot read a reply")?
                == 0
            {
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
