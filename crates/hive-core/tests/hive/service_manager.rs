//! What the daemon tells the service manager that started it.

use std::os::unix::net::UnixDatagram;

use hive_testkit::hive::TestHive;
use serde_json::json;

use crate::peer::{Doors, PATIENCE, ok};

/// The next thing that the service manager is told.
fn told(manager: &UnixDatagram) -> String {
    let mut datagram = [0; 4096];
    let length = manager.recv(&mut datagram).unwrap();
    String::from_utf8(datagram[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn c1_the_service_manager_is_told_when_the_hive_is_there_and_when_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut hive = TestHive::start().await.unwrap();
    hive.kill().await.unwrap();
    let socket = path.to_str().unwrap().to_owned();
    hive.set_env(vec![("NOTIFY_SOCKET".to_owned(), socket)]);
    hive.launch().unwrap();
    assert_eq!(told(&manager).trim_end(), "READY=1");
    // What waits for it may begin: it is not asked whether it answers yet.
    ok(hive.operator().ask(&json!({"cmd":"info"})));
    hive.terminate().await.unwrap();
    assert_eq!(told(&manager).trim_end(), "STOPPING=1");
    manager.set_nonblocking(true).unwrap();
    assert!(manager.recv(&mut [0]).is_err(), "and nothing else");
}
