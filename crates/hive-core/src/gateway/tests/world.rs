//! The egress proxy: where it leads, and where it does not.

use axum::{extract::Request as Asked, response::IntoResponse, routing::any};

use super::*;

/// A server that tells what it was asked, and sends `/away` on to a private place.
async fn site() -> SocketAddr {
    let tell = async |asked: Asked| {
        if asked.uri().path() == "/away" {
            let to = [("location", "http://127.0.0.1:7000/api/state")];
            return (hyper::StatusCode::FOUND, to, "").into_response();
        }
        let host = asked.headers()["host"].to_str().unwrap().to_owned();
        let proxied = asked.headers().contains_key("proxy-authorization");
        format!("{} {host} {proxied}", asked.uri()).into_response()
    };
    service(Router::new().fallback(any(tell))).await
}

fn get(url: &str) -> Request<Full<Bytes>> {
    Request::get(url)
        .header("host", "ignored.example")
        .header("proxy-authorization", "Basic x")
        .body(Full::default())
        .unwrap()
}

fn rig(
    site: SocketAddr,
    egress: Option<Egress>,
    names: &[(&'static str, &[&'static str])],
) -> (Rig, Arc<World>) {
    let mut setup = Setup::at(site);
    setup.world = World::new(site, names);
    setup.egress = egress;
    let world = Arc::clone(&setup.world);
    (setup.open(), world)
}

#[tokio::test]
async fn a_public_place_is_reached_at_the_address_that_was_judged() {
    let names: &[(&str, &[&str])] = &[
        ("www.example.org", &["93.184.216.34"]),
        // One that also has a private address is reached at the public one only.
        ("mixed.example.org", &["10.0.0.1", "::1", "93.184.216.35"]),
    ];
    let (rig, world) = rig(site().await, Some(Egress::default()), names);
    let (status, body) = rig.told(get("http://www.example.org/x?y=1")).await;
    assert_eq!(
        (status, body.as_str()),
        (200, "/x?y=1 www.example.org false")
    );
    let (status, _) = rig.told(get("http://mixed.example.org/")).await;
    assert_eq!(status, 200);
    let dialled: Vec<_> = world.dialled.lock().unwrap().clone();
    let expected = ["93.184.216.34:80", "93.184.216.35:80"];
    assert_eq!(dialled, expected.map(|one| one.parse().unwrap()));
    let trips = rig.told.trips.lock().unwrap().join("\n");
    assert!(
        trips.contains("www.example.org") && trips.contains("93.184.216.34"),
        "{trips}"
    );
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let names: &[(&str, &[&str])] = &[("www.example.org", &["93.184.216.34"])];
    let (rig, _) = rig(site().await, Some(Egress::default()), names);
    let mut stream = rig.connect().await;
    let connect = "CONNECT www.example.org:443 HTTP/1.1\r\nhost: www.example.org:443\r\n\r\n";
    stream.write_all(connect.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(LONG, stream.read_u8()).await.unwrap().unwrap());
    }
    assert!(
        head.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    let inner = "GET /inner HTTP/1.1\r\nhost: inside\r\nconnection: close\r\n\r\n";
    stream.write_all(inner.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(answer.ends_with("/inner inside false"), "{answer}");
}

#[tokio::test]
async fn the_hosts_own_and_private_places_are_out_of_reach_in_every_spelling() {
    let names: &[(&str, &[&str])] = &[
        ("loop.example", &["127.0.0.1"]),
        ("loop6.example", &["::1"]),
        ("mapped.example", &["::ffff:127.0.0.1"]),
        ("nat64.example", &["64:ff9b::7f00:1"]),
        ("sixtofour.example", &["2002:7f00:1::"]),
        ("lan.example", &["192.168.1.1", "10.1.2.3", "fd00::1"]),
        ("metadata.example", &["169.254.169.254"]),
        ("cgnat.example", &["100.64.1.1"]),
        ("own.example", &["93.184.216.99"]),
        ("any.example", &["0.0.0.0", "::"]),
    ];
    let (rig, world) = rig(site().await, Some(Egress::default()), names);
    let hosts = names.iter().map(|(name, _)| (*name).to_owned()).chain(
        [
            "127.0.0.1",
            "127.1.2.3",
            "0.0.0.0",
            "10.0.0.1",
            "169.254.169.254",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "93.184.216.99",
            "localhost",
            "x.localhost",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "LOCALHOST",
        ]
        .map(str::to_owned),
    );
    for host in hosts {
        let connect =
            format!("CONNECT {host}:443 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = rig.raw(connect.as_bytes()).await;
        let is_refused = answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 400");
        assert!(is_refused, "{host}: {answer}");
        let plain =
            format!("GET http://{host}/ HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = rig.raw(plain.as_bytes()).await;
        let is_refused = answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 400");
        assert!(is_refused, "{host}: {answer}");
    }
    assert!(
        world.dialled.lock().unwrap().is_empty(),
        "no packet has left"
    );
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_the_proxy_would_not() {
    let names: &[(&str, &[&str])] = &[("www.example.org", &["93.184.216.34"])];
    let (rig, world) = rig(site().await, Some(Egress::default()), names);
    let answer = rig.ask(get("http://www.example.org/away")).await;
    assert_eq!(answer.status(), 302, "it is passed on, not followed");
    let to = answer.headers()["location"].to_str().unwrap().to_owned();
    let (status, body) = rig.told(get(&to)).await;
    assert_eq!(status, 403, "{body}");
    assert_eq!(world.dialled.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_ports_and_modes_are_kept_before_a_name_is_looked_up() {
    let names: &[(&str, &[&str])] = &[
        ("www.example.org", &["93.184.216.34"]),
        ("forge.lan", &["10.0.0.7"]),
    ];
    let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
    let egress = Egress {
        allow: words(&["*.example.org"]),
        deny: words(&["bad.*"]),
        private: words(&["forge.lan:3000"]),
        ..Egress::default()
    };
    let site = site().await;
    let (rig_, world) = rig(site, Some(egress), names);
    for (url, expected) in [
        ("http://bad.example.org/", 403),
        ("http://www.example.net/", 403),
        ("http://www.example.org:8080/", 403),
        ("http://forge.lan/", 403),
        ("https://www.example.org/", 400),
        ("http://user@www.example.org/", 400),
    ] {
        assert_eq!(rig_.told(get(url)).await.0, expected, "{url}");
    }
    assert_eq!(
        world.resolved.load(Ordering::Relaxed),
        0,
        "no name has leaked"
    );
    assert_eq!(rig_.told(get("http://www.example.org/")).await.0, 200);
    assert_eq!(
        rig_.told(get("http://forge.lan:3000/")).await.0,
        200,
        "named by the operator"
    );
    let (closed, world) = rig(site, None, names);
    let (status, body) = closed.told(get("http://www.example.org/")).await;
    assert_eq!((status, body.contains("no way out")), (403, true), "{body}");
    assert_eq!(world.resolved.load(Ordering::Relaxed), 0);
    assert_eq!(
        closed.told(post("/v1/messages", "{}")).await.0,
        200,
        "the model is there"
    );
}

#[tokio::test]
async fn an_agent_has_so_many_ways_out_at_a_time() {
    let names: &[(&str, &[&str])] = &[("www.example.org", &["93.184.216.34"])];
    let site = site().await;
    let mut setup = Setup::at(site);
    setup.world = World::new(site, names);
    setup.limits.trips = 1;
    let rig = setup.open();
    let mut first = rig.connect().await;
    let connect = "CONNECT www.example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n";
    first.write_all(connect.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    timeout(LONG, first.read_exact(&mut head))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert_eq!(rig.told(get("http://www.example.org/")).await.0, 503);
}

#[tokio::test]
async fn a_name_that_takes_for_ever_takes_one_lookup_and_no_more() {
    let names: &[(&str, &[&str])] = &[("www.example.org", &["93.184.216.34"])];
    let site = site().await;
    for (lookups, expected) in [(1, 502), (2, 200)] {
        let mut setup = Setup::at(site);
        setup.world = World::new(site, names);
        setup.limits.lookups = lookups;
        setup.patience.resolving = Duration::from_secs(1);
        let rig = setup.open();
        let never = format!("http://{NEVER}/");
        assert_eq!(rig.told(get(&never)).await.0, 502);
        // The first one still holds its seat, although nobody waits for it.
        assert_eq!(rig.told(get("http://www.example.org/")).await.0, expected);
    }
}
