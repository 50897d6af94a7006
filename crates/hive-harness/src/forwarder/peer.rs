//! Who is at the other end of a connection on loopback.
//!
//! Where the agent has no network of its own, every user of the machine can connect to its port, and
//! what comes out of it spends the operator's money. The kernel says whose a connection is: only the
//! user that the harness runs as, and root, are let in.

use std::{fs, net::SocketAddr};

/// An established connection, as the kernel's table writes it. An end that has been closed already
/// counts as nobody's, so that no other state will do.
const ESTABLISHED: &str = "01";

/// Whether the other end of a connection belongs to this user.
///
/// # Errors
/// With what is known instead.
pub(super) fn check(peer: SocketAddr, own: SocketAddr) -> Result<(), String> {
    let table = fs::read_to_string("/proc/self/net/tcp")
        .map_err(|error| format!("cannot tell whose it is: {error}"))?;
    let user = rustix::process::geteuid().as_raw();
    match owner(&table, peer, own) {
        Some(owner) if owner == user || owner == 0 => Ok(()),
        Some(owner) => Err(format!("it is of user {owner}")),
        None => Err("nobody knows whose it is".to_owned()),
    }
}

/// The user who holds the end `peer` of the connection from `peer` to `own`.
fn owner(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let (peer, own) = (written(peer)?, written(own)?);
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_it =
            fields.next()? == peer && fields.next()? == own && fields.next()? == ESTABLISHED;
        // Queues, timers and retransmissions come before the user.
        is_it.then(|| fields.nth(3)?.parse().ok())?
    })
}

/// An address as the table writes it: as the number that it is in this machine's memory.
fn written(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let number = u32::from_ne_bytes(address.ip().octets());
    Some(format!("{number:08X}:{:04X}", address.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1\n\
        \x20  1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2\n\
        \x20  2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 3\n\
        \x20  3: 0100007F:C351 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0\n\
        \x20  4: garbage\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_owner_of_the_far_end_is_found() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let own = at(8080);
        assert_eq!(owner(TABLE, at(50_000), own), Some(1001));
        assert_eq!(
            owner(TABLE, at(50_001), own),
            None,
            "closed already: nobody's"
        );
        assert_eq!(owner(TABLE, at(50_002), own), None);
        assert_eq!(owner(TABLE, at(50_000), at(8081)), None);
        assert_eq!(owner("", at(50_000), own), None);
        assert_eq!(owner(TABLE, "[::1]:50000".parse().unwrap(), own), None);
    }

    #[test]
    fn ones_own_connections_are_let_in_and_ended_ones_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let client = TcpStream::connect(own).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        assert_eq!(check(peer, own), Ok(()));
        drop(client);
        assert!(check(peer, own).is_err());
    }
}
