//! Makes a history acceptable to every provider before each request.
//!
//! What is on disk may have been cut by a crash at any line. A request must begin with the user,
//! alternate, and answer every call right after it was made; so calls without a result get one that
//! says so, results without a call go, and neighbours of the same role are joined.

use std::collections::HashSet;

use hive_providers::{Block, Message, ResultContent, Role};

/// What a call gets that was cut off: the truth, since it may have run.
const INTERRUPTED: &str = "[Tool call interrupted: the process ended before its result was recorded. The outcome is \
     unknown; check before you repeat it.]";

/// The history as a request may carry it.
pub fn normalise(messages: &[Message]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        let content: Vec<Block> = message
            .content
            .iter()
            .filter(|block| !is_empty(block))
            .cloned()
            .collect();
        if content.is_empty() {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(content),
            _ => out.push(Message {
                role: message.role,
                content,
            }),
        }
    }
    pair(&mut out);
    // Only now, since pairing may have taken the first message away.
    if out
        .first()
        .is_some_and(|first| first.role == Role::Assistant)
    {
        out.insert(
            0,
            Message::user("[The beginning of this conversation is missing.]"),
        );
    }
    out
}

fn is_empty(block: &Block) -> bool {
    matches!(block, Block::Text { text, .. } if text.trim().is_empty())
}

/// Gives every call its result and takes away results without a call.
fn pair(messages: &mut Vec<Message>) {
    let mut at = 0;
    let mut open: Vec<String> = Vec::new();
    while at < messages.len() {
        match messages[at].role {
            Role::User => {
                answer(&mut messages[at], &std::mem::take(&mut open));
                if messages[at].content.is_empty() {
                    messages.remove(at);
                    // Its neighbours now have the same role.
                    if at > 0 && at < messages.len() {
                        let next = messages.remove(at);
                        messages[at - 1].content.extend(next.content);
                        open = calls(&messages[at - 1]);
                    }
                    continue;
                }
            }
            Role::Assistant => open = calls(&messages[at]),
        }
        at += 1;
    }
    if !open.is_empty() {
        let mut last = Message {
            role: Role::User,
            content: Vec::new(),
        };
        answer(&mut last, &open);
        messages.push(last);
    }
}

fn calls(message: &Message) -> Vec<String> {
    let ids = message.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}

/// Puts the results of `open` first, in the order of the calls, and drops all others.
fn answer(message: &mut Message, open: &[String]) {
    let mut results: Vec<Block> = Vec::new();
    let mut rest = Vec::new();
    let mut seen = HashSet::new();
    for block in std::mem::take(&mut message.content) {
        match &block {
            Block::ToolResult { tool_use_id, .. } => {
                if open.contains(tool_use_id) && seen.insert(tool_use_id.clone()) {
                    results.push(block);
                }
            }
            _ => rest.push(block),
        }
    }
    for id in open {
        let found = results.iter().position(
            |block| matches!(block, Block::ToolResult { tool_use_id, .. } if tool_use_id == id),
        );
        let block = match found {
            Some(at) => results.remove(at),
            None => Block::tool_result(id, ResultContent::Text(INTERRUPTED.into()), true),
        };
        message.content.push(block);
    }
    message.content.extend(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(ids: &[&str]) -> Message {
        Message {
            role: Role::Assistant,
            content: ids
                .iter()
                .map(|id| Block::tool_use(*id, "T", json!({})))
                .collect(),
        }
    }

    fn results(ids: &[&str]) -> Message {
        Message {
            role: Role::User,
            content: ids
                .iter()
                .map(|id| Block::tool_result(*id, ResultContent::Text("r".into()), false))
                .collect(),
        }
    }

    /// What every provider insists on.
    fn check(messages: &[Message]) {
        let mut role = Role::User;
        let mut open: Vec<String> = Vec::new();
        for message in messages {
            assert_eq!(message.role, role, "roles alternate");
            assert!(!message.content.is_empty());
            let answered: Vec<String> = message
                .content
                .iter()
                .filter_map(|block| match block {
                    Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                    _ => None,
                })
                .collect();
            assert_eq!(
                answered, open,
                "every call is answered once, in order, right after it"
            );
            open = calls(message);
            role = match role {
                Role::User => Role::Assistant,
                Role::Assistant => Role::User,
            };
        }
        assert!(open.is_empty(), "the last call is answered");
    }

    #[test]
    fn a_cut_call_is_answered() {
        let fixed = normalise(&[Message::user("go"), call(&["a", "b"])]);
        check(&fixed);
        assert_eq!(fixed.len(), 3);
        assert!(
            fixed[2]
                .content
                .iter()
                .all(|block| matches!(block, Block::ToolResult { is_error: true, .. }))
        );
    }

    #[test]
    fn partial_and_shuffled_results_are_put_right() {
        let fixed = normalise(&[
            Message::user("go"),
            call(&["a", "b", "c"]),
            results(&["c", "a", "stray"]),
            Message::user("and now?"),
        ]);
        check(&fixed);
        assert_eq!(fixed.len(), 3);
        assert_eq!(fixed[2].content.last(), Some(&Block::text("and now?")));
    }

    #[test]
    fn prompts_of_failed_turns_are_joined() {
        let fixed = normalise(&[
            Message::user("one"),
            Message::user("two"),
            Message::assistant("x"),
        ]);
        check(&fixed);
        assert_eq!(fixed[0].content.len(), 2);
    }

    proptest! {
        #[test]
        fn prop_any_history_becomes_acceptable(
            steps in proptest::collection::vec((0u8..6, 0u8..4, 0u8..4), 0..20)
        ) {
            let ids = ["a", "b", "c", "d"];
            let messages: Vec<Message> = steps
                .iter()
                .map(|&(kind, one, two)| {
                    let (one, two) = (ids[usize::from(one)], ids[usize::from(two)]);
                    match kind {
                        0 => Message::user("u"),
                        1 => Message::assistant("a"),
                        2 if one != two => call(&[one, two]),
                        2 => call(&[one]),
                        3 => results(&[one, two]),
                        4 => Message::user(" "),
                        _ => results(&[one]),
                    }
                })
                .collect();
            // Providers give each call its own id; ours do so within a message only here.
            let fixed = normalise(&messages);
            let mut role = Role::User;
            for message in &fixed {
                prop_assert_eq!(message.role, role);
                role = match role { Role::User => Role::Assistant, Role::Assistant => Role::User };
            }
            let again = normalise(&fixed);
            prop_assert_eq!(&again, &fixed, "it is a fixed point");
        }
    }
}
