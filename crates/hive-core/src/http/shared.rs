//! Pages of events that several readers want at the same moment, encoded once for all of them.
//!
//! Readers that keep up stand at the same place: what comes after it is the same for all. A page
//! is what followed a position when somebody read it; it stays true, for what follows it comes
//! with the next page. Few and small ones are kept.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use axum::body::Bytes;
use hive_wire::host::EventPosition;

/// How many pages are kept on one port, and how large each may be.
const MAX_PAGES: usize = 32;
const MAX_BYTES: usize = 128 * 1024;

/// Whose page it is: after what, about whom, watching whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) after: EventPosition,
    pub(super) about: Option<String>,
    pub(super) watch: Option<String>,
}

/// A page ready to be sent, and where the next one begins.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    pub(super) next: EventPosition,
    pub(super) bytes: Bytes,
}

/// The newest pages of a port.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pages: Mutex<VecDeque<(Key, Ready)>>,
}

impl Shared {
    /// The page, when somebody has had it.
    pub(super) fn get(&self, key: &Key) -> Option<Ready> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pages.iter().rev().find(|(other, _)| other == key);
        found.map(|(_, page)| page.clone())
    }

    /// Keeps a page for others.
    pub(super) fn keep(&self, key: Key, page: &Ready) {
        if page.bytes.len() > MAX_BYTES {
            return;
        }
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= MAX_PAGES {
            pages.pop_front();
        }
        pages.push_back((key, page.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_those_who_ask_the_same() {
        let shared = Shared::default();
        let key = |seq: i64, about: Option<&str>| Key {
            after: EventPosition { epoch: 1, seq },
            about: about.map(str::to_owned),
            watch: None,
        };
        let page = |seq: i64, size: usize| Ready {
            next: EventPosition { epoch: 1, seq },
            bytes: vec![0; size].into(),
        };
        shared.keep(key(1, None), &page(5, 10));
        assert_eq!(shared.get(&key(1, None)).unwrap().next.seq, 5);
        assert!(shared.get(&key(1, Some("ada"))).is_none());
        assert!(shared.get(&key(2, None)).is_none());
        shared.keep(key(2, None), &page(5, MAX_BYTES + 1));
        assert!(shared.get(&key(2, None)).is_none(), "too large to keep");
        for seq in 10..10 + MAX_PAGES as i64 {
            shared.keep(key(seq, None), &page(99, 1));
        }
        assert!(shared.get(&key(1, None)).is_none(), "it gave way");
    }
}
