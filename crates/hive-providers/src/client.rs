//! Asks a model: connects, waits within limits, tries again, and hands out events as they come.

use std::{
    collections::VecDeque,
    fmt, io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::HeaderMap;

use crate::{
    ApiError, Endpoint, ErrorKind, Fetch, FetchError, Fetched, RateLimit, Request, RetryPolicy,
    Secret, SseEvent, SseParser, StreamEvent,
};

/// The longest error body that is read.
const MAX_ERROR_BODY: usize = 256 * 1024;
/// How long the body of an error may take: the status says enough.
const ERROR_BODY: Duration = Duration::from_secs(10);
/// The longest answer of a server that does not stream.
const MAX_WHOLE_BODY: usize = 64 * 1024 * 1024;

/// What one provider's API looks like. Pure: it never touches the network.
pub trait Dialect: Send + Sync + fmt::Debug {
    /// The HTTP call for a request.
    fn call(&self, request: &Request) -> HttpCall;

    /// A reader for the stream of one answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// The events of an answer that came in one piece.
    fn whole(&self, body: &[u8]) -> Result<Vec<StreamEvent>, ApiError>;

    /// What an answer with an error status means.
    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> ApiError;

    /// What the headers of any answer say about usage limits.
    fn rate_limit(&self, headers: &HeaderMap) -> Option<RateLimit>;
}

/// Reads the stream of one answer.
pub trait Decoder: Send {
    /// Turns one server-sent event into events of ours.
    fn decode(&mut self, event: &SseEvent, out: &mut VecDeque<StreamEvent>)
    -> Result<(), ApiError>;

    /// The stream ended: whatever closes the message, for APIs that do not say so themselves.
    fn finish(&mut self, out: &mut VecDeque<StreamEvent>);
}

/// An HTTP request of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpCall {
    /// After the base URL.
    pub path: &'static str,
    /// Header fields without secrets.
    pub headers: Vec<(String, String)>,
    /// The field that carries the key, and those that the configuration adds.
    pub secrets: Vec<(String, Secret)>,
    /// JSON.
    pub body: Vec<u8>,
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the request to the head of the answer.
    pub first_byte: Duration,
    /// Between two pieces of a stream.
    pub idle: Duration,
    /// For one answer as a whole.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(60 * 60),
        }
    }
}

/// A model API with its address, key and manners.
#[derive(Debug, Clone)]
pub struct Client {
    dialect: Arc<dyn Dialect>,
    endpoint: Endpoint,
    fetch: Fetch,
    retry: RetryPolicy,
    timeouts: Timeouts,
}

/// What an answer does next.
#[derive(Debug)]
pub enum Progress {
    /// A piece of the answer.
    Event(StreamEvent),
    /// What the provider says about usage limits.
    Limit(RateLimit),
    /// An attempt failed and another follows after `delay`. What came of the answer is void.
    Retrying {
        /// From 1.
        attempt: u32,
        /// The most there will be.
        max_retries: u32,
        /// Until the next.
        delay: Duration,
        /// Why.
        error: ApiError,
    },
    /// The answer is whole.
    Done,
    /// There will be no answer, or no more of it.
    Failed(ApiError),
}

impl Client {
    /// A client for one API.
    pub fn new(
        dialect: Arc<dyn Dialect>,
        endpoint: Endpoint,
        fetch: Fetch,
        retry: RetryPolicy,
        timeouts: Timeouts,
    ) -> Self {
        Self {
            dialect,
            endpoint,
            fetch,
            retry,
            timeouts,
        }
    }

    /// Where it asks, for messages to people.
    pub fn authority(&self) -> String {
        self.endpoint.authority()
    }

    /// Asks. Nothing happens before the first [`Reply::next`].
    pub fn ask(&self, request: &Request) -> Reply {
        Reply {
            call: self.dialect.call(request),
            client: self.clone(),
            state: State::Start,
            attempt: 0,
            began: Instant::now(),
        }
    }
}

/// An answer in the making. Dropping it abandons the request.
pub struct Reply {
    client: Client,
    call: HttpCall,
    state: State,
    attempt: u32,
    began: Instant,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

enum State {
    /// The next step is to connect.
    Start,
    /// The next step is to wait, then to connect.
    Pause(Duration),
    Streaming(Box<Stream>),
    Ended,
}

struct Stream {
    fetched: Fetched,
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    limit: Option<RateLimit>,
    queue: VecDeque<StreamEvent>,
    until: tokio::time::Instant,
    request_id: Option<String>,
    has_whole_block: bool,
    is_finished: bool,
    is_at_end: bool,
}

impl Reply {
    /// The next step. After [`Progress::Done`] or [`Progress::Failed`] there is none.
    pub async fn next(&mut self) -> Progress {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Progress::Done,
                State::Pause(delay) => {
                    tokio::time::sleep(delay).await;
                    self.state = State::Start;
                }
                State::Start => match self.connect().await {
                    Ok(stream) => self.state = State::Streaming(Box::new(stream)),
                    Err(error) => return self.fail(error),
                },
                State::Streaming(mut stream) => {
                    match stream.next(self.client.timeouts.idle).await {
                        Ok(Some(progress)) => {
                            self.state = State::Streaming(stream);
                            return progress;
                        }
                        Ok(None) => return Progress::Done,
                        Err(mut error) => {
                            error.request_id = error.request_id.or(stream.request_id);
                            if stream.has_whole_block {
                                error.kind = ErrorKind::BrokenOff;
                            }
                            return self.fail(error);
                        }
                    }
                }
            }
        }
    }

    fn fail(&mut self, mut error: ApiError) -> Progress {
        for (_, secret) in &self.call.secrets {
            error.message = secret.mask(&error.message);
        }
        self.attempt += 1;
        let policy = self.client.retry;
        match policy.wait(self.attempt, &error, self.began.elapsed(), dice()) {
            Some(delay) => {
                self.state = State::Pause(delay);
                Progress::Retrying {
                    attempt: self.attempt,
                    max_retries: policy.max_retries,
                    delay,
                    error,
                }
            }
            None => Progress::Failed(error),
        }
    }

    async fn connect(&self) -> Result<Stream, ApiError> {
        let client = &self.client;
        let mut headers = self.call.headers.clone();
        let secrets = self.call.secrets.iter();
        headers.extend(secrets.map(|(name, secret)| (name.clone(), secret.expose().to_owned())));
        let url = client.endpoint.url(self.call.path);
        let body = Bytes::copy_from_slice(&self.call.body);
        let sending = client.fetch.send("POST", &url, &headers, body);
        let mut fetched = tokio::time::timeout(client.timeouts.first_byte, sending)
            .await
            .map_err(|_| ApiError::local(ErrorKind::TimedOut, "Request timed out"))?
            .map_err(unreachable)?;
        let request_id = fetched
            .header("request-id")
            .or_else(|| fetched.header("x-request-id"))
            .map(str::to_owned);
        let reading = async {
            if fetched.status >= 300 {
                // A body that does not come is no reason to forget the status.
                let body = fetched.bytes(MAX_ERROR_BODY);
                let body = tokio::time::timeout(ERROR_BODY.min(client.timeouts.idle), body).await;
                let body = body.ok().and_then(Result::ok).unwrap_or_default();
                let mut error = client
                    .dialect
                    .failure(fetched.status, &fetched.headers, &body);
                error.request_id = request_id.clone();
                return Err(error);
            }
            let is_whole = fetched
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("application/json"));
            if is_whole {
                let body = fetched.bytes(MAX_WHOLE_BODY).await.map_err(unreachable)?;
                return client.dialect.whole(&body).map(Some);
            }
            Ok(None)
        };
        let whole = tokio::time::timeout(client.timeouts.idle, reading)
            .await
            .map_err(|_| ApiError::local(ErrorKind::Stalled, "The response stopped arriving"))??;
        Ok(Stream {
            limit: client.dialect.rate_limit(&fetched.headers),
            fetched,
            parser: SseParser::default(),
            decoder: client.dialect.decoder(),
            is_at_end: whole.is_some(),
            queue: whole.unwrap_or_default().into(),
            until: tokio::time::Instant::now() + client.timeouts.total,
            request_id,
            has_whole_block: false,
            is_finished: false,
        })
    }
}

impl Stream {
    async fn next(&mut self, idle: Duration) -> Result<Option<Progress>, ApiError> {
        if let Some(limit) = self.limit.take() {
            return Ok(Some(Progress::Limit(limit)));
        }
        loop {
            if let Some(event) = self.queue.pop_front() {
                match &event {
                    StreamEvent::ContentBlockStop { .. } => self.has_whole_block = true,
                    StreamEvent::MessageStop => self.is_finished = true,
                    _ => {}
                }
                return Ok(Some(Progress::Event(event)));
            }
            if self.is_finished {
                return Ok(None);
            }
            if self.is_at_end {
                return Err(ApiError::local(
                    ErrorKind::Unreachable,
                    "Connection lost mid-response",
                ));
            }
            self.read(idle).await?;
        }
    }

    async fn read(&mut self, idle: Duration) -> Result<(), ApiError> {
        let now = tokio::time::Instant::now();
        let deadline = (now + idle).min(self.until);
        let chunk = tokio::time::timeout_at(deadline, self.fetched.chunk())
            .await
            .map_err(|_| ApiError::local(ErrorKind::Stalled, "The response stopped arriving"))?
            .map_err(unreachable)?;
        let Some(chunk) = chunk else {
            self.decoder.finish(&mut self.queue);
            self.is_at_end = true;
            return Ok(());
        };
        let mut events = Vec::new();
        let pushed = self.parser.push(&chunk, &mut events);
        for event in &events {
            self.decoder.decode(event, &mut self.queue)?;
            // Whatever follows belongs to no answer, and breaks none that is whole.
            if self.queue.back() == Some(&StreamEvent::MessageStop) {
                return Ok(());
            }
        }
        pushed.map_err(|error| ApiError::local(ErrorKind::Malformed, error.to_string()))
    }
}

fn unreachable(error: FetchError) -> ApiError {
    let message = match &error {
        FetchError::Broken { kind, message } => match kind {
            Some(io::ErrorKind::ConnectionRefused) => {
                "Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)".into()
            }
            Some(io::ErrorKind::NotFound) => {
                "Connection refused — there is no socket at the base URL (ENOENT)".into()
            }
            Some(io::ErrorKind::ConnectionReset) => "Connection reset (ECONNRESET)".into(),
            _ => format!("Unable to connect to API ({message})"),
        },
        FetchError::Invalid(_) => {
            return ApiError::local(ErrorKind::BadRequest, error.to_string());
        }
        FetchError::TooLong(_) => {
            return ApiError::local(ErrorKind::Malformed, error.to_string());
        }
    };
    ApiError::local(ErrorKind::Unreachable, message)
}

/// A random byte to spread retries; without randomness they are merely not spread.
fn dice() -> u8 {
    let mut byte = [0u8; 1];
    match getrandom::fill(&mut byte) {
        Ok(()) => byte[0],
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests;
