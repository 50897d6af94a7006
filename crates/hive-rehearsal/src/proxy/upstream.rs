//! The real API at the other end: one connection per request, with TLS when the URL says so.

use std::{fmt, io, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    client::conn::http1,
    header::{self, HeaderValue},
    http::uri::{Authority, PathAndQuery},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};
use tokio_util::task::TaskTracker;

/// How long a connection may take; the answer may take as long as it likes.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// A real API.
#[derive(Clone)]
pub(crate) struct Upstream {
    authority: Authority,
    port: u16,
    /// What stands before every path, without a slash at its end.
    base: String,
    tls: Option<TlsConnector>,
}

/// Why a URL cannot be used, or the API behind it not be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("`{0}` is no URL of an API: write it like https://api.anthropic.com")]
    Url(String),
    #[error("cannot use TLS: {0}")]
    Tls(String),
    #[error("cannot connect to {authority}: {source}")]
    Connect {
        authority: String,
        source: io::Error,
    },
    #[error("{authority} did not answer: {source}")]
    Exchange {
        authority: String,
        source: hyper::Error,
    },
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.base)
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(url: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let authority = uri.authority().cloned().ok_or_else(wrong)?;
        let has_more = uri.query().is_some() || authority.as_str().contains('@');
        let (tls, port) = match uri.scheme_str() {
            Some("https") if !has_more => (Some(connector()?), 443),
            Some("http") if !has_more => (None, 80),
            _ => return Err(wrong()),
        };
        Ok(Self {
            port: authority.port_u16().unwrap_or(port),
            authority,
            base: uri.path().trim_end_matches('/').to_owned(),
            tls,
        })
    }
}

/// TLS with the certificates that this machine trusts.
fn connector() -> Result<TlsConnector, UpstreamError> {
    let failed = |error: &dyn fmt::Display| UpstreamError::Tls(error.to_string());
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let hint = "this machine has no certificates to trust; install ca-certificates";
        return Err(failed(&hint));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

impl Upstream {
    /// Sends a request and gives the answer as soon as its head is there.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        tasks: &TaskTracker,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", PathAndQuery::as_str);
        let target: Uri = format!("{}{path}", self.base)
            .parse()
            .map_err(|_| UpstreamError::Url(self.to_string()))?;
        *request.uri_mut() = target;
        let host = HeaderValue::try_from(self.authority.as_str())
            .map_err(|_| UpstreamError::Url(self.to_string()))?;
        request.headers_mut().insert(header::HOST, host);
        let connecting = self.connect();
        let stream = tokio::time::timeout(CONNECT_TIME, connecting)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|source| UpstreamError::Connect {
                authority: self.authority.to_string(),
                source,
            })?;
        let exchange = |source| UpstreamError::Exchange {
            authority: self.authority.to_string(),
            source,
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(exchange)?;
        // It ends with the answer's body, which belongs to a connection of ours.
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the real model ended");
            }
        });
        sender.send_request(request).await.map_err(exchange)
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        // An IPv6 address stands in brackets in a URL only.
        let host = self.authority.host().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, self.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

/// A connection with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let table = [
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("http://localhost/base/", Some("http://localhost/base")),
            ("localhost:8080", None),
            ("ftp://x", None),
            ("http://user:secret@host", None),
            ("http://host/?key=x", None),
            ("", None),
        ];
        for (url, expected) in table {
            let upstream = url.parse::<Upstream>().ok().map(|found| found.to_string());
            assert_eq!(upstream.as_deref(), expected, "{url}");
        }
    }
}
