//! How many tokens a request and an answer are: about a quarter of their bytes, which is enough
//! for a gauge to move as it would.

use crate::{ask::Size, scenario::answer::UsageGiven, script::Block};

/// Numbers of tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_creation: u64,
}

/// Tokens after the last mark of a cached request.
const UNCACHED_TAIL: u64 = 4;

/// The tokens of so many bytes: at least one.
pub(crate) fn of_bytes(bytes: u64) -> u64 {
    (bytes / 4).max(1)
}

/// The tokens of a call: what the rule gives, else an estimate. A rule that gives one kind of the
/// request's tokens means all of them, so the others are then 0.
pub(crate) fn usage(size: Size, blocks: &[Block], given: UsageGiven) -> Usage {
    let output = given.output_tokens.unwrap_or_else(|| of_blocks(blocks));
    let is_given = given.input_tokens.is_some()
        || given.cache_read_tokens.is_some()
        || given.cache_creation_tokens.is_some();
    if is_given {
        return Usage {
            input: given.input_tokens.unwrap_or(0),
            output,
            cache_read: given.cache_read_tokens.unwrap_or(0),
            cache_creation: given.cache_creation_tokens.unwrap_or(0),
        };
    }
    let total = of_bytes(size.total);
    if !size.is_cached {
        return Usage {
            input: total,
            output,
            ..Usage::default()
        };
    }
    let input = total.min(UNCACHED_TAIL);
    let cacheable = total - input;
    // What the model saw in the call before is read; the newest message is written.
    let cache_creation = if size.is_continued {
        of_bytes(size.tail).min(cacheable)
    } else {
        cacheable
    };
    Usage {
        input,
        output,
        cache_read: cacheable - cache_creation,
        cache_creation,
    }
}

fn of_blocks(blocks: &[Block]) -> u64 {
    let bytes: usize = blocks
        .iter()
        .map(|block| match block {
            Block::Thinking(text) | Block::Text(text) => text.len(),
            Block::ToolUse { name, input } => name.len() + input.to_string().len(),
        })
        .sum();
    of_bytes(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(is_cached: bool, is_continued: bool) -> Size {
        Size {
            total: 4_000,
            tail: 400,
            is_cached,
            is_continued,
        }
    }

    #[test]
    fn a_request_counts_once_however_it_is_cached() {
        let table = [
            (size(false, false), (1_000, 0, 0)),
            (size(false, true), (1_000, 0, 0)),
            (size(true, false), (4, 0, 996)),
            (size(true, true), (4, 896, 100)),
            (Size::default(), (1, 0, 0)),
        ];
        for (size, expected) in table {
            let usage = usage(size, &[], UsageGiven::default());
            let found = (usage.input, usage.cache_read, usage.cache_creation);
            assert_eq!(found, expected, "{size:?}");
        }
    }

    #[test]
    fn numbers_of_the_rule_win() {
        let given = UsageGiven {
            input_tokens: Some(170_000),
            ..UsageGiven::default()
        };
        let blocks = [Block::Text("eight by".to_owned())];
        let expected = Usage {
            input: 170_000,
            output: 2,
            ..Usage::default()
        };
        assert_eq!(usage(size(true, true), &blocks, given), expected);
    }
}
