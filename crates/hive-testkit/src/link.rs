//! A bare connection that does exactly what it is told, so that a test can break it at any point.

use std::{io, path::Path, time::Duration};

use hive_wire::{
    WireError,
    command::{Command, ReplyHead, encode_request},
    line::{LineBuffer, MAX_LINE},
    socket,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

/// How long any reply may take. A daemon that takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A connection with at most one request under way.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    buffer: LineBuffer,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self {
            stream: socket::connect(path).await?,
            buffer: LineBuffer::new(MAX_LINE),
        })
    }

    /// Whether the daemon has closed the connection, so that nothing written to it would arrive.
    pub fn is_closed(&self) -> bool {
        match self.stream.try_read(&mut [0]) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Writes a request.
    ///
    /// # Errors
    /// Those of the socket; what became of the request is unknown then.
    pub async fn write<C: Command>(&mut self, command: &C) -> io::Result<()> {
        let line = encode_request(command, None)?;
        self.stream.write_all(&line).await
    }

    /// Reads the reply to the request that was written last.
    ///
    /// # Errors
    /// `UnexpectedEof` when the connection ends before it, `TimedOut` when it takes longer than
    /// [`PATIENCE`], `InvalidData` when it makes no sense.
    pub async fn read<C: Command>(&mut self) -> io::Result<Result<C::Reply, WireError>> {
        let line = match tokio::time::timeout(PATIENCE, self.line()).await {
            Ok(line) => line?,
            Err(_) => {
                let what = format!("no reply to `{}` within {PATIENCE:?}", C::NAME);
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
        };
        let head: ReplyHead = serde_json::from_slice(&line)?;
        match head.error {
            Some(error) if !head.ok => Ok(Err(error)),
            _ => Ok(Ok(serde_json::from_slice(&line)?)),
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let line = self.buffer.next_line();
            let line = line.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if let Some(line) = line {
                return Ok(line.to_vec());
            }
            if self.stream.read_buf(self.buffer.room()).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
