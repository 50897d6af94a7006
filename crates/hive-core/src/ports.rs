//! Which port an agent's page has: computed from its name, so that it stays the same, and moved to
//! the next free one when two names meet (C4).

use std::ops::RangeInclusive;

use hive_wire::AgentName;

/// The port of the root agent's page.
pub(crate) const ROOT_AGENT_PORT: u16 = 8000;

/// The first free port at or after the name's own, wrapping around; none when all are taken.
pub(crate) fn assign(
    name: &AgentName,
    range: &RangeInclusive<u16>,
    is_taken: impl Fn(u16) -> bool,
) -> Option<u16> {
    let size = u32::from(range.end().checked_sub(*range.start())?) + 1;
    let own = fnv1a_32(name.as_str().as_bytes()) % size;
    (0..size)
        .map(|step| (own + step) % size)
        .filter_map(|offset| u16::try_from(u32::from(*range.start()) + offset).ok())
        .find(|port| !is_taken(*port))
}

/// The 32-bit FNV-1a hash, as interfaces.md names it: other tools compute the same port.
fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c4_the_hash_is_fnv_1a() {
        for (text, hash) in [
            ("", 0x811c_9dc5),
            ("a", 0xe40c_292c),
            ("foobar", 0xbf9c_f968),
        ] {
            assert_eq!(fnv1a_32(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn c4_a_taken_port_moves_to_the_next_free_one_and_wraps() {
        let name: AgentName = "ada".parse().unwrap();
        let range = 8100..=8102;
        let own = assign(&name, &range, |_| false).unwrap();
        let next = assign(&name, &range, |port| port == own).unwrap();
        assert_eq!(next, if own == 8102 { 8100 } else { own + 1 });
        assert_eq!(assign(&name, &range, |_| true), None);
    }
}
