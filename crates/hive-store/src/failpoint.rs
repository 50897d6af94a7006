//! Places where a crash can be ordered from outside, for the crash campaigns.
//!
//! With the `failpoints` feature, `FAILPOINTS=store::after_commit=2%,broker::before_reply=1%` kills
//! the process at the named places with the given chance, as `kill -9` would. Without the feature
//! nothing of this is in the binary.

/// Dies here, perhaps: see the module.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::reach($name);
    };
}

/// Aborts the process when the environment asks for it at this place.
#[cfg(feature = "failpoints")]
pub fn reach(name: &str) {
    use std::{collections::HashMap, sync::OnceLock};

    static CHANCES: OnceLock<HashMap<String, u32>> = OnceLock::new();
    let chances = CHANCES.get_or_init(|| {
        let text = std::env::var("FAILPOINTS").unwrap_or_default();
        let one = |entry: &str| {
            let (name, chance) = entry.split_once('=')?;
            Some((
                name.trim().to_owned(),
                chance.split('%').next()?.trim().parse().ok()?,
            ))
        };
        text.split([',', ';']).filter_map(one).collect()
    });
    let Some(percent) = chances.get(name) else {
        return;
    };
    let mut byte = [0_u8; 4];
    getrandom::fill(&mut byte).expect("the kernel gives random bytes");
    if u32::from_le_bytes(byte) % 100 < *percent {
        std::process::abort();
    }
}
