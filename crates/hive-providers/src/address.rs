//! Which addresses an agent may reach: a pure judgement, made after names are resolved. The host's
//! egress proxy and the engine's own tools judge alike.
//!
//! Only public unicast is let through. What embeds an IPv4 address in an IPv6 one is refused
//! whatever it embeds, because who unpacks it on the way is nobody's to know.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Why an address is out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The same wire.
    LinkLocal,
    /// Shared by a carrier's customers.
    Shared,
    /// Many machines.
    Multicast,
    /// No machine.
    Unspecified,
    /// A cloud's metadata service.
    Metadata,
    /// An IPv4 address in an IPv6 one.
    Transition,
    /// For nobody.
    Reserved,
    /// One of this machine's own.
    OwnMachine,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "a carrier's shared address",
            Self::Multicast => "a multicast address",
            Self::Unspecified => "no address of one machine",
            Self::Metadata => "a cloud's metadata service",
            Self::Transition => "an IPv6 form of an IPv4 address",
            Self::Reserved => "a reserved address",
            Self::OwnMachine => "an address of the hive's own machine",
        })
    }
}

/// A network and what it is; the first one that holds an address names it.
struct Net4(u32, u32, Refused);

const fn net4(octets: [u8; 4], bits: u32, what: Refused) -> Net4 {
    Net4(u32::from_be_bytes(octets), bits, what)
}

const REFUSED_V4: [Net4; 18] = [
    net4([0, 0, 0, 0], 8, Refused::Unspecified),
    net4([10, 0, 0, 0], 8, Refused::Private),
    net4([100, 100, 100, 200], 32, Refused::Metadata),
    net4([100, 64, 0, 0], 10, Refused::Shared),
    net4([127, 0, 0, 0], 8, Refused::Loopback),
    net4([168, 63, 129, 16], 32, Refused::Metadata),
    net4([169, 254, 169, 254], 32, Refused::Metadata),
    net4([169, 254, 0, 0], 16, Refused::LinkLocal),
    net4([172, 16, 0, 0], 12, Refused::Private),
    net4([192, 0, 0, 0], 24, Refused::Reserved),
    net4([192, 0, 2, 0], 24, Refused::Reserved),
    net4([192, 88, 99, 0], 24, Refused::Transition),
    net4([192, 168, 0, 0], 16, Refused::Private),
    net4([198, 18, 0, 0], 15, Refused::Reserved),
    net4([198, 51, 100, 0], 24, Refused::Reserved),
    net4([203, 0, 113, 0], 24, Refused::Reserved),
    net4([224, 0, 0, 0], 4, Refused::Multicast),
    net4([240, 0, 0, 0], 4, Refused::Reserved),
];

struct Net6(u128, u32, Refused);

const fn net6(groups: [u16; 8], bits: u32, what: Refused) -> Net6 {
    let mut number = 0;
    let mut at = 0;
    while at < 8 {
        number = number << 16 | groups[at] as u128;
        at += 1;
    }
    Net6(number, bits, what)
}

#[rustfmt::skip]
const REFUSED_V6: [Net6; 16] = [
    net6([0, 0, 0, 0, 0, 0, 0, 0], 128, Refused::Unspecified),
    net6([0, 0, 0, 0, 0, 0, 0, 1], 128, Refused::Loopback),
    // IPv4-compatible, IPv4-mapped, IPv4-translated, NAT64 with the known and with local prefixes.
    net6([0, 0, 0, 0, 0, 0, 0, 0], 96, Refused::Transition),
    net6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, Refused::Transition),
    net6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Refused::Transition),
    net6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Refused::Transition),
    net6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Refused::Transition),
    // Teredo, then the rest of the registry's special assignments, then 6to4.
    net6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Refused::Transition),
    net6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Refused::Reserved),
    net6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Refused::Reserved),
    net6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Refused::Transition),
    net6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Refused::Reserved),
    net6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Refused::Metadata),
    net6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Refused::Private),
    net6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 9, Refused::LinkLocal),
    net6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Refused::Multicast),
];

/// Everything that is global unicast lies in here.
const GLOBAL_V6: Net6 = net6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, Refused::Reserved);

/// Whether an agent may reach this address.
///
/// # Errors
/// With what the address is.
pub fn judge(address: IpAddr) -> Result<(), Refused> {
    match address {
        IpAddr::V4(address) => judge_v4(address),
        IpAddr::V6(address) => judge_v6(address),
    }
}

fn judge_v4(address: Ipv4Addr) -> Result<(), Refused> {
    let bits = address.to_bits();
    let net = REFUSED_V4
        .iter()
        .find(|Net4(net, length, _)| (bits ^ net) >> (32 - length) == 0);
    net.map_or(Ok(()), |Net4(_, _, what)| Err(*what))
}

fn judge_v6(address: Ipv6Addr) -> Result<(), Refused> {
    let bits = address.to_bits();
    let holds = |Net6(net, length, _): &Net6| (bits ^ net) >> (128 - length) == 0;
    match REFUSED_V6.iter().find(|net| holds(net)) {
        Some(Net6(_, _, what)) => Err(*what),
        None if !holds(&GLOBAL_V6) => Err(Refused::Reserved),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_judged_by_what_they_are() {
        use Refused::*;
        for (address, expected) in [
            ("93.184.216.34", Ok(())),
            ("1.1.1.1", Ok(())),
            ("100.63.255.255", Ok(())),
            ("100.128.0.1", Ok(())),
            ("172.15.255.255", Ok(())),
            ("172.32.0.1", Ok(())),
            ("223.255.255.255", Ok(())),
            ("126.255.255.255", Ok(())),
            ("2606:4700:4700::1111", Ok(())),
            ("2a00:1450:4001:82a::200e", Ok(())),
            ("0.0.0.0", Err(Unspecified)),
            ("0.1.2.3", Err(Unspecified)),
            ("10.0.0.1", Err(Private)),
            ("100.64.0.1", Err(Shared)),
            ("100.127.255.255", Err(Shared)),
            ("100.100.100.200", Err(Metadata)),
            ("127.0.0.1", Err(Loopback)),
            ("127.255.255.255", Err(Loopback)),
            ("168.63.129.16", Err(Metadata)),
            ("169.254.0.1", Err(LinkLocal)),
            ("169.254.169.254", Err(Metadata)),
            ("172.16.0.1", Err(Private)),
            ("172.31.255.255", Err(Private)),
            ("192.0.0.192", Err(Reserved)),
            ("192.0.2.1", Err(Reserved)),
            ("192.88.99.1", Err(Transition)),
            ("192.168.1.1", Err(Private)),
            ("198.18.0.1", Err(Reserved)),
            ("198.19.255.255", Err(Reserved)),
            ("198.51.100.7", Err(Reserved)),
            ("203.0.113.7", Err(Reserved)),
            ("224.0.0.1", Err(Multicast)),
            ("239.255.255.255", Err(Multicast)),
            ("240.0.0.1", Err(Reserved)),
            ("255.255.255.255", Err(Reserved)),
            ("::", Err(Unspecified)),
            ("::1", Err(Loopback)),
            ("::2", Err(Transition)),
            ("::7f00:1", Err(Transition)),
            ("::ffff:127.0.0.1", Err(Transition)),
            ("::ffff:1.1.1.1", Err(Transition)),
            ("::ffff:0:127.0.0.1", Err(Transition)),
            ("64:ff9b::7f00:1", Err(Transition)),
            ("64:ff9b:1::1", Err(Transition)),
            ("100::1", Err(Reserved)),
            ("2001::1", Err(Transition)),
            ("2001:0:53aa:64c:0:fbff:80ff:fffe", Err(Transition)),
            ("2001:10::1", Err(Reserved)),
            ("2001:20::1", Err(Reserved)),
            ("2001:db8::1", Err(Reserved)),
            ("2002:7f00:1::", Err(Transition)),
            ("3fff::1", Err(Reserved)),
            ("5f00::1", Err(Reserved)),
            ("fc00::1", Err(Private)),
            ("fd00:ec2::254", Err(Metadata)),
            ("fd12:3456::1", Err(Private)),
            ("fe80::1", Err(LinkLocal)),
            ("fec0::1", Err(LinkLocal)),
            ("ff02::1", Err(Multicast)),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(judge(address), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn prop_no_ipv6_form_of_any_ipv4_address_gets_through(number in any::<u32>(), more in any::<u64>()) {
            let v4 = u128::from(number);
            let more = u128::from(more);
            for form in [
                v4,
                0xffff << 32 | v4,
                0xffff << 48 | v4,
                0x0064_ff9b << 96 | v4,
                0x0064_ff9b_0001 << 80 | more << 16,
                0x2002 << 112 | v4 << 80 | more,
                0x2001_0000 << 96 | more << 32 | v4,
            ] {
                prop_assert!(judge(Ipv6Addr::from_bits(form).into()).is_err(), "{form:x}");
            }
        }

        #[test]
        fn prop_what_gets_through_is_not_what_the_standard_library_calls_special(number in any::<u32>()) {
            let address = Ipv4Addr::from_bits(number);
            let is_special = address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_unspecified()
                || address.is_documentation();
            prop_assert!(!is_special || judge(address.into()).is_err(), "{address}");
        }

        #[test]
        fn prop_what_gets_through_in_ipv6_is_global_unicast(number in any::<u128>()) {
            let address = Ipv6Addr::from_bits(number);
            if judge(address.into()).is_ok() {
                prop_assert_eq!(address.segments()[0] >> 13, 1, "{}", address);
                prop_assert!(!address.is_unique_local() && !address.is_unicast_link_local());
            }
        }
    }
}
