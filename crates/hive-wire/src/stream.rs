//! One peer's stream, watched for input only.
//!
//! Whoever watches a stream for room to write is woken each time the peer reads, which is once per
//! reply and nearly always for nothing. So that is watched for only while the peer lags behind.

use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net,
    },
    task::{Context, Poll, ready},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{RecvFlags, SendFlags, recv, send},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    net::UnixStream,
};

use crate::line::{LineBuffer, READ_CHUNK};

/// A stream of lines to one peer, and the way back.
#[derive(Debug)]
pub struct Stream {
    stream: AsyncFd<net::UnixStream>,
}

impl Stream {
    /// Takes over a stream.
    ///
    /// # Errors
    /// When it cannot be watched.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        let stream = watch(stream.into_std()?, Interest::READABLE)?;
        Ok(Self { stream })
    }

    /// Reads what has arrived; 0 at the end of the stream. Call [`LineBuffer::next_line`] until it
    /// has no more before reading again.
    ///
    /// Cancel-safe: a call that is dropped has read nothing.
    ///
    /// # Errors
    /// Those of reading.
    pub async fn read(&self, lines: &mut LineBuffer) -> io::Result<usize> {
        self.read_with(|bytes| lines.push(bytes)).await
    }

    /// Hands over what has arrived, at most a [`READ_CHUNK`]; 0 at the end of the stream. One task
    /// reads at a time: of two that wait, the one that came first is not woken.
    ///
    /// Cancel-safe: a call that is dropped has read nothing.
    ///
    /// # Errors
    /// Those of reading.
    pub async fn read_with(&self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(cx, &mut take)).await
    }

    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        take: &mut impl FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.stream.poll_read_ready(cx))?;
            match read_chunk(ready.get_inner(), take) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Ok(read) => {
                    // A short read is taken as a sign that there is no more, which saves a system
                    // call on every line; should more have come meanwhile, it stays ready.
                    if (1..READ_CHUNK).contains(&read) {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(read));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Writes as much as the peer has room for.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when it has none, and those of writing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        send(&self.stream, bytes, flags).map_err(io::Error::from)
    }

    /// Waits until the peer has room again.
    ///
    /// Cancel-safe: it holds nothing but the wait itself.
    ///
    /// # Errors
    /// When the stream cannot be watched.
    pub async fn writable(&self) -> io::Result<()> {
        let stream = self.stream.get_ref().try_clone()?;
        let watched = watch(stream, Interest::WRITABLE)?;
        watched.writable().await.map(|_| ())
    }

    /// Whether the peer closed both directions.
    pub fn has_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::empty())];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let polled = poll(&mut fds, Some(&at_once));
        polled.is_err() || fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for types that may change their descriptor; a stream does not"
)]
fn watch(stream: net::UnixStream, interest: Interest) -> io::Result<AsyncFd<net::UnixStream>> {
    AsyncFd::with_interest(stream, interest)
}

/// Reads into the stack first: most lines are short, and a connection that idles has no buffer.
fn read_chunk(stream: &net::UnixStream, take: &mut impl FnMut(&[u8])) -> io::Result<usize> {
    let mut chunk = [MaybeUninit::uninit(); READ_CHUNK];
    let ((arrived, _), _) = recv(stream, &mut chunk, RecvFlags::DONTWAIT)?;
    take(arrived);
    Ok(arrived.len())
}
