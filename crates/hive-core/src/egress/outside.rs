//! The world as the proxy sees it: names, this machine's addresses, connections.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    pin::Pin,
};

use tokio::net::{TcpStream, lookup_host};

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
        // The kernel lets nobody use an address that the machine does not have.
        let can_use = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
        // Unless it is told to let everybody use any: then nothing follows from it.
        let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        can_use(address) && !can_use(foreign)
    }

    fn dial(&self, address: SocketAddr) -> Soon<'_, TcpStream> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        assert!(Outside.is_own("127.0.0.1".parse().unwrap()));
        assert!(!Outside.is_own("93.184.216.34".parse().unwrap()));
    }
}
