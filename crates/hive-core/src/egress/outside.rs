//! The world as the proxy sees it: names, this machine's addresses, connections.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    pin::Pin,
};

use tokio::net::{TcpStream, lookup_host};

/// Any port will do where nothing is sent.
const DISCARD: u16 = 9;

/// Something to wait for.
pub(crate) type Soon<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Who knows the world; tests have another one.
pub(crate) trait Resolver: Send + Sync {
    /// Every address of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Soon<'a, Vec<IpAddr>>;

    /// Whether an address is one of this machine's own.
    fn is_own(&self, address: IpAddr) -> bool;

    /// A connection to exactly this address.
    fn dial(&self, address: SocketAddr) -> Soon<'_, TcpStream>;
}

/// The real one.
#[derive(Debug, Default)]
pub(crate) struct Outside;

impl Resolver for Outside {
    fn resolve<'a>(&'a self, name: &'a str) -> Soon<'a, Vec<IpAddr>> {
        Box::pin(async move {
            let found = lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn is_own(&self, address: IpAddr) -> bool {
        // The kernel lets nobody use an address that the machine does not have, unless it is told to
        // let everybody use any: then nothing follows from it.
        let can_use = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
        let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        talks_to_itself(address) || (can_use(address) && !can_use(foreign))
    }

    fn dial(&self, address: SocketAddr) -> Soon<'_, TcpStream> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

/// Whether who talks to this address talks from it. Nothing is sent: this is a look at routes.
fn talks_to_itself(address: IpAddr) -> bool {
    let unspecified = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let from = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((unspecified, 0))?;
        socket.connect((address, DISCARD))?;
        Ok(socket.local_addr()?.ip())
    };
    from().is_ok_and(|from| from == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        assert!(Outside.is_own("127.0.0.1".parse().unwrap()));
        assert!(Outside.is_own("127.9.8.7".parse().unwrap()));
        // Where it would talk to the world from is its own, too.
        if let Ok(socket) = UdpSocket::bind("0.0.0.0:0")
            && socket.connect(("93.184.216.34", DISCARD)).is_ok()
        {
            let own = socket.local_addr().unwrap().ip();
            assert!(Outside.is_own(own) && talks_to_itself(own), "{own}");
        }
        assert!(!Outside.is_own("93.184.216.34".parse().unwrap()));
    }
}
