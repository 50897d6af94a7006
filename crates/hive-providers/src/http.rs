//! Connections: plain, TLS, through a proxy, or over a unix socket.
//!
//! Roots and TLS are set up when the first `https` connection needs them, since most engines in a
//! hive talk to a gateway on loopback and should start in a millisecond.

use std::{
    fmt,
    future::Future,
    io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Uri, body::Incoming};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo},
};
use thiserror::Error;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::{
    TlsConnector,
    rustls::{self, pki_types::ServerName},
};

use crate::{
    address,
    proxy::{PROXY_LOGIN, Proxies, Proxy, open_tunnel, without_login},
};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);

/// Where an API is: `https://host/prefix`, `http://…`, or `unix:/path/to.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: String,
    socket: Option<PathBuf>,
}

/// A base URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{url:?} is not a base URL: use https://HOST, http://HOST:PORT or unix:/PATH")]
pub struct EndpointError {
    url: String,
}

impl Endpoint {
    /// Reads a base URL.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        let url = url.trim().trim_end_matches('/');
        let error = || EndpointError {
            url: url.to_owned(),
        };
        if let Some(path) = url.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(error());
            }
            return Ok(Self {
                base: "http://localhost".into(),
                socket: Some(PathBuf::from(path)),
            });
        }
        let uri: Uri = url.parse().map_err(|_| error())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(error());
        }
        Ok(Self {
            base: url.to_owned(),
            socket: None,
        })
    }

    /// The whole address of `path`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// `host:port` for messages to people.
    pub fn authority(&self) -> String {
        if let Some(socket) = &self.socket {
            return socket.display().to_string();
        }
        self.base
            .parse::<Uri>()
            .ok()
            .and_then(|uri| Some(without_login(uri.authority()?.as_str()).to_owned()))
            .unwrap_or_else(|| self.base.clone())
    }

    /// Whether it is the host `name`.
    pub fn is_host(&self, name: &str) -> bool {
        self.socket.is_none()
            && self
                .base
                .parse::<Uri>()
                .is_ok_and(|uri| uri.host() == Some(name))
    }
}

/// An HTTP client that keeps connections open between calls.
#[derive(Clone)]
pub struct Fetch {
    client: Client<Connector, Full<Bytes>>,
    proxies: Arc<Proxies>,
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

/// The head of an answer, and its body still to come.
#[derive(Debug)]
pub struct Fetched {
    /// The HTTP status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    body: Incoming,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The address, a header or a proxy makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No connection, or it broke.
    #[error("{message}")]
    Broken {
        /// What happened, in words.
        message: String,
        /// The system's error, where it is known.
        kind: Option<io::ErrorKind>,
    },
    /// More bytes than allowed.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Fetch {
    /// A client. `env` gives `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
    pub fn new(socket: Option<&Endpoint>, env: impl Fn(&str) -> Option<String>) -> Self {
        Self::over(Connector::new(socket, env))
    }

    /// A client for addresses that come from others: it connects to public ones, and to whatever
    /// the hosts in `except` have. The address that was judged is the one that is connected to, so
    /// that a name cannot lead elsewhere a moment later. What a proxy connects to is its own to
    /// judge.
    pub fn public(except: Arc<Vec<String>>, env: impl Fn(&str) -> Option<String>) -> Self {
        Self::over(Connector {
            reach: Reach::Public { except },
            ..Connector::new(None, env)
        })
    }

    fn over(connector: Connector) -> Self {
        let proxies = Arc::clone(&connector.proxies);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(2)
            .build(connector);
        Self { client, proxies }
    }

    /// Whether a host is reached through a proxy on this machine's loopback: in a container that is
    /// the hive's own, which resolves names and judges addresses itself.
    pub fn has_local_proxy(&self, scheme: &str, host: &str) -> bool {
        let proxy = self.proxies.choose(scheme, host).ok().flatten();
        let proxy = proxy.and_then(|proxy| proxy.uri.host());
        let address = proxy.map(|host| host.trim_matches(['[', ']']).parse::<std::net::IpAddr>());
        matches!(address, Some(Ok(address)) if address.is_loopback())
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Fetched, FetchError> {
        let mut request = hyper::Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // Through a tunnel the proxy sees no request, and is told when it is opened.
        let target = request
            .uri_ref()
            .filter(|uri| uri.scheme_str() == Some("http"));
        let proxy = target.and_then(|uri| self.proxies.choose("http", uri.host()?).ok()?);
        if let Some(login) = proxy.and_then(|proxy| proxy.login.as_ref()) {
            request = request.header(PROXY_LOGIN, login.expose());
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| FetchError::Invalid(format!("cannot build the request: {error}")))?;
        let response = self.client.request(request).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        Ok(Fetched {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }
}

impl Fetched {
    /// The next bytes of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => return Err(broken(error)),
            }
        }
    }

    /// The whole body, at most `max` bytes.
    pub async fn bytes(&mut self, max: usize) -> Result<Vec<u8>, FetchError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > max {
                return Err(FetchError::TooLong(max));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// One header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Keeps the innermost cause: hyper's own text says only "client error (Connect)".
fn broken(error: impl std::error::Error + 'static) -> FetchError {
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    let mut kind = None;
    loop {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            kind = Some(io.kind());
        }
        match cause.source() {
            Some(next) => cause = next,
            None => break,
        }
    }
    let message = cause.to_string();
    if kind == Some(UNUSABLE) {
        return FetchError::Invalid(message);
    }
    FetchError::Broken { message, kind }
}

/// A connection that will not come about the next time either.
const UNUSABLE: io::ErrorKind = io::ErrorKind::InvalidInput;

/// Opens connections for an HTTP client: one for clients with other bodies than [`Fetch`] has.
#[derive(Clone)]
pub struct Connector {
    socket: Option<Arc<PathBuf>>,
    proxies: Arc<Proxies>,
    tls: Arc<OnceLock<Arc<rustls::ClientConfig>>>,
    reach: Reach,
}

/// Which addresses it connects to.
#[derive(Clone)]
enum Reach {
    Any,
    Public { except: Arc<Vec<String>> },
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    /// Connects to `socket` where that is a unix socket, and else to whatever a request names.
    /// `env` gives `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
    pub fn new(socket: Option<&Endpoint>, env: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            socket: socket
                .and_then(|endpoint| endpoint.socket.clone())
                .map(Arc::new),
            proxies: Arc::new(Proxies::from_env(env)),
            tls: Arc::default(),
            reach: Reach::Any,
        }
    }

    async fn connect(self, uri: Uri) -> io::Result<Wire> {
        let connecting = async {
            if let Some(path) = &self.socket {
                let stream = UnixStream::connect(path.as_path()).await?;
                return Ok(Wire(Kind::Unix(TokioIo::new(stream))));
            }
            let host = uri.host().unwrap_or_default().to_owned();
            let is_tls = uri.scheme_str() == Some("https");
            let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
            let scheme = if is_tls { "https" } else { "http" };
            let proxy = self.proxies.choose(scheme, &host);
            let proxy = proxy.map_err(|error| io::Error::new(UNUSABLE, error.clone()))?;
            let stream = match proxy {
                None => dial(&host, port, &self.reach).await?,
                Some(Proxy { uri, login }) => {
                    let kind = uri.scheme_str().unwrap_or_default();
                    if kind.starts_with("socks") {
                        let words = format!("a {kind} proxy cannot be used: name an http:// one");
                        return Err(io::Error::new(UNUSABLE, words));
                    }
                    let proxy_host = uri.host().unwrap_or_default();
                    let port_there = uri.port_u16().unwrap_or(3128);
                    let mut stream = dial(proxy_host, port_there, &Reach::Any).await?;
                    if is_tls {
                        open_tunnel(&mut stream, &host, port, login.as_ref()).await?;
                    }
                    stream
                }
            };
            if !is_tls {
                return Ok(Wire(Kind::Tcp(TokioIo::new(stream), proxy.is_some())));
            }
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
                .map_err(io::Error::other)?;
            let stream = TlsConnector::from(self.tls()?)
                .connect(name, stream)
                .await?;
            Ok(Wire(Kind::Tls(Box::new(TokioIo::new(stream)))))
        };
        tokio::time::timeout(CONNECT, connecting)
            .await
            .unwrap_or_else(|_| {
                Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "connection timed out",
                ))
            })
    }

    fn tls(&self) -> io::Result<Arc<rustls::ClientConfig>> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(io::Error::other(
                "no trusted certificates found: install ca-certificates or set SSL_CERT_FILE",
            ));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::clone(self.tls.get_or_init(|| Arc::new(config))))
    }
}

async fn dial(host: &str, port: u16, reach: &Reach) -> io::Result<TcpStream> {
    let host = host.trim_matches(['[', ']']);
    let stream = match reach {
        Reach::Public { except } if !except.iter().any(|name| name == host) => {
            let found = lookup_host((host, port)).await?;
            let public: Vec<_> = found
                .filter(|found| address::judge(found.ip()).is_ok())
                .collect();
            if public.is_empty() {
                let words = format!("{host} has no public address");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
            }
            TcpStream::connect(&*public).await?
        }
        Reach::Any | Reach::Public { .. } => TcpStream::connect((host, port)).await?,
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl tower_service::Service<Uri> for Connector {
    type Response = Wire;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Wire>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection of any kind.
pub struct Wire(Kind);

enum Kind {
    Tcp(TokioIo<TcpStream>, bool),
    Tls(Box<TokioIo<tokio_rustls::client::TlsStream<TcpStream>>>),
    Unix(TokioIo<UnixStream>),
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().proxy(matches!(self.0, Kind::Tcp(_, true)))
    }
}

macro_rules! on_wire {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().0 {
            Kind::Tcp(stream, _) => {
                let $stream = Pin::new(stream);
                $call
            }
            Kind::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
            Kind::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl hyper::rt::Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        on_wire!(self, stream => stream.poll_read(cx, buf))
    }
}

impl hyper::rt::Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        on_wire!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_wire!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_wire!(self, stream => stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn base_urls() {
        for (url, expected) in [
            (
                "https://api.anthropic.com/",
                Some("https://api.anthropic.com/v1/x"),
            ),
            ("http://127.0.0.1:8765", Some("http://127.0.0.1:8765/v1/x")),
            ("http://h/prefix/", Some("http://h/prefix/v1/x")),
            ("unix:/run/hive/gateway.sock", Some("http://localhost/v1/x")),
            ("unix:relative", None),
            ("ftp://h", None),
            ("api.anthropic.com", None),
            ("", None),
        ] {
            let url_of = Endpoint::parse(url)
                .ok()
                .map(|endpoint| endpoint.url("/v1/x"));
            assert_eq!(url_of.as_deref(), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn a_proxy_on_loopback_is_the_hives_own() {
        for (proxy, host, expected) in [
            ("http://127.0.0.1:4567", "example.org", true),
            ("http://[::1]:4567", "example.org", true),
            ("http://127.0.0.1:4567", "localhost", false),
            ("http://proxy.corp:3128", "example.org", false),
            ("", "example.org", false),
        ] {
            let env = |name: &str| (name == "HTTPS_PROXY").then(|| proxy.to_owned());
            let fetch = Fetch::new(None, env);
            assert_eq!(
                fetch.has_local_proxy("https", host),
                expected,
                "{proxy} {host}"
            );
        }
    }

    #[tokio::test]
    async fn a_client_for_the_web_connects_to_public_addresses_only() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut server = tokio::task::JoinSet::new();
        server.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // The request first: an answer before it is nonsense.
                stream.read_u8().await.ok();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer).await.ok();
            }
        });
        let named = Arc::new(vec!["127.0.0.1".to_owned()]);
        for (except, host, is_open) in [
            (Arc::default(), "127.0.0.1", false),
            (Arc::default(), "localhost", false),
            (Arc::default(), "[::ffff:127.0.0.1]", false),
            (Arc::clone(&named), "localhost", false),
            (named, "127.0.0.1", true),
        ] {
            let fetch = Fetch::public(except, |_| None);
            let url = format!("http://{host}:{port}/");
            let answer = fetch.send("GET", &url, &[], Bytes::new()).await;
            match answer {
                Ok(answer) => assert!(is_open && answer.status == 200, "{host}"),
                Err(FetchError::Broken { kind, .. }) => {
                    assert!(!is_open, "{host}");
                    assert_eq!(kind, Some(io::ErrorKind::PermissionDenied), "{host}");
                }
                Err(error) => panic!("{host}: {error}"),
            }
        }
    }

    #[test]
    fn a_login_in_an_address_is_not_shown() {
        let endpoint = Endpoint::parse("https://user:pass@host:1/x").unwrap();
        assert_eq!(endpoint.authority(), "host:1");
    }

    #[tokio::test]
    async fn a_proxy_is_logged_in_to_with_and_without_a_tunnel() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://me:secret@{}", listener.local_addr().unwrap());
        let (heads, mut seen) = tokio::sync::mpsc::channel(4);
        let mut server = tokio::task::JoinSet::new();
        server.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                heads.send(String::from_utf8(head).unwrap()).await.unwrap();
                let answer = b"HTTP/1.1 407 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer).await.ok();
            }
        });
        let login = format!(
            "proxy-authorization: Basic {}",
            STANDARD.encode("me:secret")
        );
        let fetch = Fetch::new(None, |name| {
            matches!(name, "HTTPS_PROXY" | "HTTP_PROXY").then(|| proxy.clone())
        });
        for (url, first) in [
            ("https://example.org/x", "CONNECT example.org:443 HTTP/1.1"),
            ("http://example.org/x", "GET http://example.org/x HTTP/1.1"),
        ] {
            let answer = fetch.send("GET", url, &[], Bytes::new()).await;
            assert!(answer.is_err() || answer.is_ok_and(|a| a.status == 407));
            let head = seen.recv().await.unwrap();
            assert_eq!(head.lines().next(), Some(first));
            assert!(head.lines().any(|line| line == login), "{head}");
        }
    }

    #[tokio::test]
    async fn a_proxy_that_cannot_be_used_is_said_to_be_so_at_once() {
        for (proxy, words) in [
            ("socks5://127.0.0.1:1080", "socks5"),
            ("http://pro xy:3128", "ALL_PROXY does not name a proxy"),
        ] {
            let fetch = Fetch::new(None, |name| (name == "ALL_PROXY").then(|| proxy.to_owned()));
            for url in ["http://example.org/", "https://example.org/"] {
                let refused = fetch.send("GET", url, &[], Bytes::new()).await.err();
                assert!(
                    matches!(&refused, Some(FetchError::Invalid(said)) if said.contains(words)),
                    "{refused:?}"
                );
            }
        }
    }
}
