//! The check itself, with faults that are planted: each is found, and only where it is.

use hive_wire::{Timestamp, agent::Receipt};

use super::*;
use crate::conversation::ledger::News;

const NOTHING: &str = "nothing was found";

fn words(from: &str, to: &str, body: &str, in_reply_to: Option<i64>) -> Words {
    Words {
        from: from.to_owned(),
        to: to.to_owned(),
        body: body.to_owned(),
        in_reply_to: in_reply_to.map(MessageId),
    }
}

/// Questions 1 to 4 of ada to bob: one that is answered, one that expires, one that is taken back,
/// one that is answered too.
fn query(id: i64) -> Query {
    Query {
        asker: "ada".to_owned(),
        target: "bob".to_owned(),
        question: format!("question {id}?"),
        options: vec!["yes".to_owned(), "no".to_owned()],
        multi: false,
        expires: id == 2,
    }
}

fn end(id: i64) -> &'static str {
    match id {
        1 => "bob's answer to 1",
        2 => "[expired]",
        3 => "[cancelled by ada]",
        _ => "bob's answer to 4",
    }
}

fn news(id: i64, answer: &str) -> News {
    News {
        message: MessageId(40 + id),
        to: "ada".to_owned(),
        question: query(id).question,
        answer: answer.to_owned(),
    }
}

/// A conversation in which every promise was kept.
fn good() -> Memory {
    let ledger = Ledger::default();
    for (id, words) in [
        (1, words("ada", "bob", "one", None)),
        (2, words("ada", "bob", "two", None)),
        (3, words("bob", "ada", "re one", Some(1))),
    ] {
        ledger.said(MessageId(id), words.clone());
        ledger.heard(&words.to.clone(), MessageId(id), words);
    }
    for (id, owner, text) in [
        (10, "ada", "tea"),
        (11, "ada", "cake"),
        (12, "bob", "bread"),
    ] {
        ledger.set(owner, text);
        ledger.fired(owner, text, MessageId(id));
    }
    for id in 1..=4 {
        ledger.asked(QuestionId(id), query(id));
        ledger.put(QuestionId(id), MessageId(30 + id), query(id));
        ledger.ended(QuestionId(id), news(id, end(id)));
    }
    ledger.answered(QuestionId(1), "bob", end(1));
    ledger.answered(QuestionId(4), "bob", end(4));
    ledger.cancelled(QuestionId(3), "ada");
    ledger.withdrawn(QuestionId(3), MessageId(50), "bob");
    assert_eq!(ledger.open(), [""; 0]);
    ledger.0.into_inner().unwrap()
}

/// What a fault is found as, in the words of the one violation that it is.
fn found(plant: impl FnOnce(&mut Memory)) -> String {
    let mut memory = good();
    plant(&mut memory);
    let violations = memory.check();
    assert!(violations.len() <= 1, "{violations:#?}");
    let first = violations.into_iter().next();
    first.unwrap_or_else(|| NOTHING.to_owned())
}

fn assert_found(what: &str, plant: impl FnOnce(&mut Memory)) {
    let found = found(plant);
    assert!(found.contains(what), "{what}: {found}");
}

/// Notes something instead of what happened.
fn instead<K: Ord, N: Ord>(notes: &mut BTreeMap<K, BTreeSet<N>>, key: K, note: N) {
    notes.insert(key, BTreeSet::from([note]));
}

/// Notes something besides what happened.
fn also<K: Ord, N: Ord>(notes: &mut BTreeMap<K, BTreeSet<N>>, key: K, note: N) {
    notes.entry(key).or_default().insert(note);
}

#[test]
fn c3_nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(found(|_| ()), NOTHING);
    let again = ("bob".to_owned(), words("ada", "bob", "one", None));
    let redelivered = |m: &mut Memory| also(&mut m.heard, MessageId(1), again);
    assert_eq!(found(redelivered), NOTHING);
}

#[test]
fn c3_a_message_that_is_lost_doubled_or_invented_is_found() {
    let one = || ("bob".to_owned(), words("ada", "bob", "one", None));
    assert_found("1 was said", |m| drop(m.heard.remove(&MessageId(1))));
    assert_found("9 was heard and never said", |m| {
        also(&mut m.heard, MessageId(9), one());
    });
    assert_found("was sent as 1 and as 9", |m| {
        also(&mut m.said, MessageId(9), one().1);
        also(&mut m.heard, MessageId(9), one());
    });
    assert_found("message 1 is several", |m| {
        also(&mut m.said, MessageId(1), words("ada", "bob", "two", None));
    });
}

#[test]
fn c3_a_message_with_another_text_sender_recipient_or_thread_is_found() {
    let bob_heard = |words: Words| ("bob".to_owned(), words);
    for changed in [
        bob_heard(words("ada", "bob", "one ", None)),
        bob_heard(words("ada", "bob", "two", None)),
        bob_heard(words("bob", "bob", "one", None)),
        bob_heard(words("ada", "ada", "one", None)),
        bob_heard(words("ada", "bob", "one", Some(2))),
        ("ada".to_owned(), words("ada", "bob", "one", None)),
    ] {
        let note = changed.clone();
        assert_found("1 was said as", |m| {
            instead(&mut m.heard, MessageId(1), note);
        });
        assert_found("1 was said as", |m| {
            also(&mut m.heard, MessageId(1), changed);
        });
    }
    for wrong in [None, Some(2), Some(3)] {
        let reply = words("bob", "ada", "re one", wrong);
        assert_found("3 was said as", |m| {
            instead(&mut m.heard, MessageId(3), ("ada".to_owned(), reply));
        });
    }
}

#[test]
fn m8_a_reminder_that_is_lost_doubled_invented_or_anothers_is_found() {
    let of = |who: &str, text: &str| (who.to_owned(), text.to_owned());
    let tea = || of("ada", "tea");
    assert_found("fired 0 times", |m| drop(m.fired.remove(&tea())));
    assert_found("fired 2 times", |m| {
        also(&mut m.fired, tea(), MessageId(19));
    });
    assert_found("fired and was never set", |m| {
        m.set.remove(&tea());
    });
    // One that says what another is to say is missing, and what it says is there twice or nobody's.
    for other in [of("ada", "cake"), of("ada", "bread"), of("bob", "tea")] {
        let mut memory = good();
        memory.fired.remove(&tea());
        also(&mut memory.fired, other.clone(), MessageId(10));
        let violations = memory.check();
        assert_eq!(violations.len(), 2, "{violations:#?}");
        for one in [tea(), other] {
            let named = format!("reminder {one:?} fired");
            let is_named = violations.iter().any(|found| found.contains(&named));
            assert!(is_named, "{named}: {violations:#?}");
        }
    }
}

#[test]
fn m4_a_question_that_reaches_its_target_changed_is_found() {
    let changed: [fn(&mut Query); 6] = [
        |query| query.asker = "cid".to_owned(),
        |query| query.target = "cid".to_owned(),
        |query| query.question = "question 2?".to_owned(),
        |query| query.options.reverse(),
        |query| query.multi = true,
        |query| query.expires = true,
    ];
    for change in changed {
        let mut query = query(1);
        change(&mut query);
        assert_found("question 1 was asked as", |m| {
            instead(&mut m.put, QuestionId(1), (MessageId(31), query));
        });
    }
    assert_found("question 1 was asked as", |m| {
        also(&mut m.put, QuestionId(1), (MessageId(39), query(1)));
    });
    assert_found("question 1 was asked as", |m| {
        m.put.remove(&QuestionId(1));
    });
    assert_found("question 1 is several", |m| {
        also(&mut m.asked, QuestionId(1), query(2));
    });
}

#[test]
fn m4_m5_an_end_other_than_what_was_done_is_found() {
    for (id, other) in [
        (1, "bob's answer to 1 "),
        (1, "bob's answer to 4"),
        (1, "[expired]"),
        (1, "[cancelled by ada]"),
        (1, ""),
        (2, "bob's answer to 1"),
        (2, "[cancelled by ada]"),
        (3, "[cancelled by bob]"),
        (3, "[cancelled by operator]"),
        (3, "[expired]"),
    ] {
        let what = format!("question {id} of ada ended with");
        assert_found(&what, |m| {
            instead(&mut m.ended, QuestionId(id), news(id, other));
        });
    }
    let changed: [fn(&mut News); 2] = [
        |news| news.to = "bob".to_owned(),
        |news| news.question = "question 4?".to_owned(),
    ];
    for change in changed {
        let mut news = news(1, end(1));
        change(&mut news);
        assert_found("question 1 of ada ended with", |m| {
            instead(&mut m.ended, QuestionId(1), news);
        });
    }
    let mut told_again = news(1, end(1));
    told_again.message = MessageId(49);
    assert_found("question 1 of ada ended with", |m| {
        also(&mut m.ended, QuestionId(1), told_again);
    });
    assert_found("question 1 of ada ended with", |m| {
        m.ended.remove(&QuestionId(1));
    });
}

#[test]
fn m4_m5_an_end_by_the_wrong_one_is_found() {
    let by = |who: &str, id| (who.to_owned(), end(id).to_owned());
    assert_found("took these answers", |m| {
        instead(&mut m.answered, QuestionId(1), by("cid", 1));
    });
    assert_found("took these answers", |m| {
        also(&mut m.answered, QuestionId(1), by("bob", 4));
    });
    assert_found("could be taken back by", |m| {
        instead(&mut m.cancelled, QuestionId(3), "bob".to_owned());
    });
    assert_found("was answered with", |m| {
        also(&mut m.answered, QuestionId(3), by("bob", 1));
    });
    assert_found("does not expire", |m| {
        m.answered.remove(&QuestionId(1));
        instead(&mut m.ended, QuestionId(1), news(1, "[expired]"));
    });
    assert_found("question 9 was answered and never asked", |m| {
        also(&mut m.answered, QuestionId(9), by("bob", 1));
    });
    assert_found("question 9 was ended and never asked", |m| {
        also(&mut m.ended, QuestionId(9), news(1, end(1)));
    });
    let taken_back = || (MessageId(51), "bob".to_owned());
    assert_found("that question 1 was taken back", |m| {
        also(&mut m.withdrawn, QuestionId(1), taken_back());
    });
    assert_found("that question 3 was taken back", |m| {
        also(&mut m.withdrawn, QuestionId(3), taken_back());
    });
    assert_found("that question 3 was taken back", |m| m.withdrawn.clear());
}

/// The history of a hive that kept everything.
fn kept(memory: &Memory) -> Vec<HistoryRow> {
    let row = |(id, said): (&MessageId, &BTreeSet<Words>)| {
        let words = only(said).unwrap();
        HistoryRow {
            receipt: Receipt {
                message_id: *id,
                from: words.from.parse().unwrap(),
                to: words.to.clone(),
                state: MessageState::Acked,
                deliveries: 1,
                turn: None,
                sent_at: Timestamp::from_millis(0),
                acked_at: None,
            },
            body: words.body.clone(),
            in_reply_to: words.in_reply_to,
        }
    };
    memory.said.iter().map(row).collect()
}

#[test]
fn c3_a_message_that_is_kept_with_other_words_is_found() {
    let memory = good();
    let found = |plant: fn(&mut Vec<HistoryRow>)| {
        let mut rows = kept(&memory);
        plant(&mut rows);
        memory.check_history(&rows).len()
    };
    assert_eq!(found(|_| ()), 0);
    let faults: [fn(&mut Vec<HistoryRow>); 5] = [
        |rows| rows[0].body.push('!'),
        |rows| rows[2].in_reply_to = Some(MessageId(2)),
        |rows| rows[2].in_reply_to = None,
        |rows| rows[0].receipt.to = "cid".to_owned(),
        |rows| drop(rows.remove(0)),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        assert_eq!(found(fault), 1, "fault {number}");
    }
}

/// A question as a hive that kept everything lists it.
fn listed(id: i64) -> QuestionRow {
    let query = query(id);
    QuestionRow {
        question_id: QuestionId(id),
        asker: query.asker.parse().unwrap(),
        target: query.target,
        question: query.question,
        options: query.options,
        multi: query.multi,
        asked_at: Timestamp::from_millis(0),
        expires_at: query.expires.then(|| Timestamp::from_millis(9)),
        answer: Some(end(id).to_owned()),
        answered_at: Some(Timestamp::from_millis(1)),
    }
}

#[test]
fn m4_a_question_that_is_kept_with_another_text_or_end_is_found() {
    let memory = good();
    let found = |plant: fn(&mut Vec<QuestionRow>)| {
        let mut rows: Vec<QuestionRow> = (1..=4).map(listed).collect();
        plant(&mut rows);
        memory.check_questions(&rows).len()
    };
    assert_eq!(found(|_| ()), 0);
    assert_eq!(found(|rows| drop(rows.drain(..2))), 0, "the newest alone");
    assert_eq!(found(|rows| rows.truncate(2)), 0, "as many as fit");
    assert_eq!(found(Vec::clear), 4, "none at all");
    let faults: [fn(&mut Vec<QuestionRow>); 5] = [
        |rows| rows[0].answer = Some(end(4).to_owned()),
        |rows| rows[0].answer = None,
        |rows| rows[1].question.push('?'),
        |rows| rows[2].target = "cid".to_owned(),
        |rows| drop(rows.remove(1)),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        assert_eq!(found(fault), 1, "fault {number}");
    }
}

#[test]
fn who_waits_for_something_is_named() {
    let ledger = Ledger(good().into());
    ledger.set("ada", "more tea");
    ledger.asked(QuestionId(5), query(5));
    let open = ["ada waits for 1 reminders and the ends of 1 questions"];
    assert_eq!(ledger.open(), open);
    ledger.fired("ada", "something else", MessageId(19));
    ledger.ended(QuestionId(9), news(9, "to another"));
    assert_eq!(ledger.open(), [""; 0], "wrong news is nothing to wait for");
}
