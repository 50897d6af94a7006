//! What is checked before anything is routed, and what every answer says to browsers.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::Site;

/// The values of `Host` that mean the port at this address.
pub(super) fn own_hosts(address: SocketAddr, further: &[String]) -> Arc<[String]> {
    let port = address.port();
    let names = [
        "localhost".to_owned(),
        address.ip().to_string(),
        format!("[{}]", address.ip()),
    ];
    let with_port = names
        .iter()
        .chain(further)
        .map(|name| format!("{name}:{port}"));
    with_port.chain(further.iter().cloned()).collect()
}

/// A page that a browser was tricked into loading from here names another host (DNS rebinding), and
/// one that another site made sends that site's origin.
pub(super) async fn require_own_origin(
    State(site): State<Site>,
    request: Request,
    next: Next,
) -> Response {
    // A name in the request line would count for more than the header.
    if !is_own_host(request.headers(), &site.hosts) || request.uri().authority().is_some() {
        let text = "this host name is not one of this hive's: see `dashboard.hosts` in hive.toml\n";
        return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
    }
    if !is_own_origin(request.headers(), &site.hosts) {
        let text = "requests of other sites are refused\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    next.run(request).await
}

fn is_own_host(headers: &HeaderMap, hosts: &[String]) -> bool {
    let mut given = headers.get_all(header::HOST).iter();
    match (
        given.next().and_then(|host| host.to_str().ok()),
        given.next(),
    ) {
        (Some(host), None) => hosts.iter().any(|own| host.eq_ignore_ascii_case(own)),
        _ => false,
    }
}

/// No origin at all is what tools send, and browsers for their own page's reads.
fn is_own_origin(headers: &HeaderMap, hosts: &[String]) -> bool {
    let mut given = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), None) = (given.next(), given.next()) else {
        return headers.get(header::ORIGIN).is_none();
    };
    let name = origin.to_str().ok().and_then(|origin| {
        let name = origin.strip_prefix("http://");
        name.or_else(|| origin.strip_prefix("https://"))
    });
    name.is_some_and(|name| hosts.iter().any(|own| name.eq_ignore_ascii_case(own)))
}

/// What browsers must not do with any answer of ours, unless a page says otherwise.
pub(super) async fn add_headers(mut response: Response) -> Response {
    const HEADERS: [(HeaderName, &str); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_our_own_origin_passes() {
        let hosts = own_hosts("127.0.0.1:7000".parse().unwrap(), &["hive.example".into()]);
        for (given, expected) in [
            (&[][..], true),
            (&["http://127.0.0.1:7000"], true),
            (&["http://LOCALHOST:7000"], true),
            (&["https://hive.example"], true),
            (&["http://127.0.0.1:8100"], false),
            (&["http://127.0.0.1"], false),
            (&["null"], false),
            (&[""], false),
            (&["http://evil.test"], false),
            (&["http://localhost:7000.evil.test"], false),
            (&["http://localhost:70000"], false),
            (&["http://localhost:7000/"], false),
            (&["ftp://localhost:7000"], false),
            (&["http://localhost:7000", "http://evil.test"], false),
        ] {
            let headers = headers(header::ORIGIN, given);
            assert_eq!(is_own_origin(&headers, &hosts), expected, "{given:?}");
        }
    }

    #[test]
    fn only_our_own_host_passes() {
        let hosts = own_hosts("127.0.0.1:7000".parse().unwrap(), &[]);
        for (given, expected) in [
            (&["localhost:7000"][..], true),
            (&[], false),
            (&["localhost"], false),
            (&["127.0.0.1:7001"], false),
            (&["localhost:7000", "localhost:7000"], false),
        ] {
            let headers = headers(header::HOST, given);
            assert_eq!(is_own_host(&headers, &hosts), expected, "{given:?}");
        }
    }
}
