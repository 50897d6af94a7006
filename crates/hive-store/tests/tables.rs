//! The registry, questions, reminders, schedules, approvals and permissions: what each method
//! promises, and that it is still so after a crash.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use common::{Hive, agent, at};
use hive_store::{
    Mail, NewMessage, Refusal,
    sqlite::{
        AgentRecord, ApprovalState, Firing, MAX_ROWS, NewApproval, NewQuestion, NewSchedule,
        Permissions, QuestionEnd, Run, Tx, Wanted,
    },
};
use hive_wire::{
    ApprovalId, MessageId, QuestionId, Recipient, ReminderId, ScheduleId, Timestamp, host::Runtime,
};

fn refused<T: std::fmt::Debug>(
    hive: &mut Hive,
    operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
) -> Refusal {
    hive.try_run(operation).unwrap().unwrap_err()
}

fn register(hive: &mut Hive, name: &str, parent: Option<&str>, port: u16) -> AgentRecord {
    let parent = parent.map(agent);
    hive.run(|tx| tx.register_agent(&agent(name), parent.as_ref(), Runtime::None, port))
}

#[test]
fn c9_agents_are_registered_with_their_place_and_port() {
    let mut hive = Hive::new();
    let ruth = register(&mut hive, "ruth", None, 8000);
    assert_eq!((ruth.port, ruth.parent.clone()), (8000, None));
    assert_eq!(ruth.created_at.millis(), hive.clock);
    let ada = register(&mut hive, "ada", Some("ruth"), 8101);
    assert_eq!(ada.parent, Some(agent("ruth")));
    let twice = refused(&mut hive, |tx| {
        tx.register_agent(&agent("ada"), None, Runtime::None, 1)
    });
    assert!(matches!(twice, Refusal::Conflict(_)), "{twice}");
    hive.crash();
    assert_eq!(
        hive.readers().agents().unwrap(),
        [ada.clone(), ruth.clone()],
        "by name"
    );
    assert_eq!(hive.run(|tx| tx.living_agents()), [ada.clone(), ruth]);
    assert_eq!(hive.run(|tx| tx.agent(&agent("ada"))), Some(ada));
    assert_eq!(hive.run(|tx| tx.agent(&agent("bob"))), None);
}

#[test]
fn c13_how_an_agent_is_meant_to_run_survives_a_crash() {
    let mut hive = Hive::new();
    let ada = register(&mut hive, "ada", None, 8101);
    assert_eq!(ada.run, Run::default(), "registered is not running");
    let run = Run {
        wanted: Wanted::Running,
        engine: "claude".into(),
        model: "haiku".into(),
        generation: 7,
        failure: Some("it ended at once".into()),
        notice: Some(hive.send("bob", "ada", "you were started")),
        restarts: 3,
        restarted_at: Some(Timestamp::from_millis(1_000)),
    };
    hive.run(|tx| tx.set_run(&agent("ada"), &run));
    let unknown = refused(&mut hive, |tx| tx.set_run(&agent("bob"), &run));
    assert!(matches!(unknown, Refusal::NotFound { .. }), "{unknown}");
    hive.crash();
    assert_eq!(hive.run(|tx| tx.agent(&agent("ada"))).unwrap().run, run);

    hive.run(|tx| tx.destroy_agent(&agent("ada")));
    let again = register(&mut hive, "ada", None, 8101).run;
    let expected = Run {
        generation: 8,
        notice: run.notice,
        ..Run::default()
    };
    assert_eq!(again, expected, "what still runs of the old one is older");
}

#[test]
fn a_destroyed_agent_leaves_its_mail_and_its_port() {
    let mut hive = Hive::new();
    let first = register(&mut hive, "ada", None, 8101);
    register(&mut hive, "bob", Some("ada"), 8102);
    let id = hive.send("bob", "ada", "stays");
    hive.run(|tx| tx.destroy_agent(&agent("ada")));
    assert_eq!(hive.run(|tx| tx.agent(&agent("ada"))), None);
    let bob = hive.run(|tx| tx.agent(&agent("bob"))).unwrap();
    assert_eq!(bob.parent, None, "its children become roots");
    let twice = refused(&mut hive, |tx| tx.destroy_agent(&agent("ada")));
    assert!(matches!(twice, Refusal::NotFound { .. }), "{twice}");
    let never = refused(&mut hive, |tx| tx.destroy_agent(&agent("cid")));
    assert!(matches!(never, Refusal::NotFound { .. }), "{never}");
    hive.crash();
    assert!(hive.run(|tx| tx.receipt(id)).is_some());
    assert_eq!(hive.run(|tx| tx.former_port(&agent("ada"))), Some(8101));
    assert_eq!(hive.run(|tx| tx.former_port(&agent("cid"))), None);
    let again = register(&mut hive, "ada", Some("bob"), 8105);
    assert_eq!(again.created_at, first.created_at);
    assert_eq!((again.port, again.parent), (8105, Some(agent("bob"))));
}

fn question(asker: &str, target: &str, expires_at: Option<i64>) -> NewQuestion {
    NewQuestion {
        asker: asker.parse().unwrap(),
        target: target.parse().unwrap(),
        question: "which?".to_owned(),
        options: vec!["a".to_owned(), "\"b\"".to_owned()],
        multi: true,
        expires_at: expires_at.map(at),
    }
}

fn ask(hive: &mut Hive, asker: &str, target: &str, expires_at: Option<i64>) -> QuestionId {
    hive.run(|tx| tx.ask(&question(asker, target, expires_at)))
}

#[test]
fn m4_a_question_is_kept_as_it_was_asked() {
    let mut hive = Hive::new();
    let id = ask(&mut hive, "ada", "operator", Some(99));
    let asked_at = hive.clock;
    hive.crash();
    let rows = hive.readers().questions(false, None).unwrap();
    let row = &rows[0];
    assert_eq!((row.question_id, row.target.as_str()), (id, "operator"));
    assert_eq!(
        (row.asker.as_str(), row.question.as_str()),
        ("ada", "which?")
    );
    assert_eq!(
        (row.options.len(), row.options[1].as_str(), row.multi),
        (2, "\"b\"", true)
    );
    assert_eq!((row.asked_at, row.expires_at), (at(asked_at), Some(at(99))));
    assert_eq!((&row.answer, row.answered_at), (&None, None));
}

#[test]
fn m5_only_the_target_answers_and_only_once() {
    let mut hive = Hive::new();
    let id = ask(&mut hive, "ada", "bob", None);
    let (bob, cid): (Recipient, Recipient) = ("bob".parse().unwrap(), "cid".parse().unwrap());
    let answer = |by, answer| QuestionEnd::Answered { by, answer };
    let stranger = refused(&mut hive, |tx| tx.end_question(id, &answer(&cid, "me!")));
    assert!(matches!(stranger, Refusal::Denied(_)), "{stranger}");
    let nobody = refused(&mut hive, |tx| {
        tx.end_question(QuestionId(9), &answer(&bob, "?"))
    });
    assert!(matches!(nobody, Refusal::NotFound { .. }), "{nobody}");
    let row = hive.run(|tx| tx.end_question(id, &answer(&bob, "a")));
    assert_eq!(row.answer.as_deref(), Some("a"));
    assert_eq!(row.answered_at, Some(at(hive.clock)));
    hive.crash();
    let second = refused(&mut hive, |tx| tx.end_question(id, &answer(&bob, "b")));
    assert!(matches!(second, Refusal::Conflict(_)), "{second}");
    assert!(hive.readers().questions(false, None).unwrap().is_empty());
    assert_eq!(hive.readers().questions(true, None).unwrap(), [row]);
}

#[test]
fn m7_the_asker_takes_its_own_question_back() {
    let mut hive = Hive::new();
    let id = ask(&mut hive, "ada", "bob", None);
    let (ada, bob) = (agent("ada"), agent("bob"));
    let other = refused(&mut hive, |tx| {
        tx.end_question(id, &QuestionEnd::Cancelled { by: &bob })
    });
    assert!(matches!(other, Refusal::Denied(_)), "{other}");
    let row = hive.run(|tx| tx.end_question(id, &QuestionEnd::Cancelled { by: &ada }));
    assert_eq!(row.answer.as_deref(), Some("[cancelled by ada]"));
    let twice = refused(&mut hive, |tx| tx.end_question(id, &QuestionEnd::Expired));
    assert!(matches!(twice, Refusal::Conflict(_)), "{twice}");
}

#[test]
fn m4_questions_expire_in_the_order_of_their_time() {
    let mut hive = Hive::new();
    let now = hive.clock;
    let late = ask(&mut hive, "ada", "bob", Some(now + 3_000));
    let soon = ask(&mut hive, "ada", "bob", Some(now + 1_000));
    ask(&mut hive, "ada", "bob", None);
    let next = |hive: &mut Hive| hive.run(|tx| tx.next_expiry());
    assert_eq!(next(&mut hive), Some(at(now + 1_000)));
    assert!(hive.run(|tx| tx.expired_questions(100)).is_empty());
    hive.clock = now + 5_000;
    assert_eq!(hive.run(|tx| tx.expired_questions(100)), [soon, late]);
    for id in [soon, late] {
        let row = hive.run(|tx| tx.end_question(id, &QuestionEnd::Expired));
        assert_eq!(row.answer.as_deref(), Some("[expired]"));
    }
    assert!(hive.run(|tx| tx.expired_questions(100)).is_empty());
    assert_eq!(next(&mut hive), None, "what never expires is on no agenda");
}

#[test]
fn open_questions_are_those_asked_and_those_owed() {
    let mut hive = Hive::new();
    let asked = ask(&mut hive, "ada", "bob", None);
    let owed = ask(&mut hive, "cid", "ada", None);
    let other = ask(&mut hive, "cid", "bob", None);
    let closed = ask(&mut hive, "ada", "cid", None);
    hive.run(|tx| tx.end_question(closed, &QuestionEnd::Expired));
    let of = |hive: &mut Hive, name: &str| -> Vec<QuestionId> {
        let rows = hive.run(|tx| tx.open_questions_of(&agent(name)));
        rows.into_iter().map(|row| row.question_id).collect()
    };
    assert_eq!(of(&mut hive, "ada"), [asked, owed]);
    assert_eq!(of(&mut hive, "bob"), [asked, other]);
    assert_eq!(of(&mut hive, "eve"), []);
    let count = |hive: &mut Hive, name: &str| {
        let asker = name.parse().unwrap();
        hive.run(|tx| tx.count_open_questions(&asker))
    };
    assert_eq!((count(&mut hive, "ada"), count(&mut hive, "cid")), (1, 2));
    assert_eq!(hive.readers().counts().unwrap().questions, 3);
    let all: Vec<_> = hive.readers().questions(true, None).unwrap();
    assert!(all.is_sorted_by_key(|row| row.question_id) && all.len() == 4);
    let put_to = |all, target| -> Vec<QuestionId> {
        let rows = hive.readers().questions(all, Some(target)).unwrap();
        rows.into_iter().map(|row| row.question_id).collect()
    };
    assert_eq!(put_to(false, "bob"), [asked, other]);
    assert_eq!(
        (put_to(false, "cid"), put_to(true, "cid")),
        (vec![], vec![closed])
    );
}

#[test]
fn of_too_many_questions_the_oldest_open_ones_are_listed_and_the_newest_of_all() {
    let most = MAX_ROWS as usize + 1;
    let mut hive = Hive::new();
    let asked: Vec<_> = (0..most + 2)
        .map(|_| ask(&mut hive, "ada", "bob", None))
        .collect();
    let listed = |all| -> Vec<QuestionId> {
        let rows = hive.readers().questions(all, None).unwrap();
        rows.into_iter().map(|row| row.question_id).collect()
    };
    assert_eq!(listed(false), asked[..most]);
    assert_eq!(listed(true), asked[2..]);
}

#[test]
fn m8_reminders_are_bounded_and_fire_once_in_order() {
    let mut hive = Hive::new();
    let now = hive.clock;
    let set = |hive: &mut Hive, name: &str, body: &str, due: i64| {
        hive.run(|tx| tx.remind(&agent(name), body, at(now + due), 3))
    };
    let late = set(&mut hive, "ada", "late", 3_000);
    let first = set(&mut hive, "ada", "first", 1_000);
    let same = set(&mut hive, "ada", "same time, set later", 1_000);
    let fourth = refused(&mut hive, |tx| tx.remind(&agent("ada"), "x", at(now), 3));
    assert!(
        matches!(fourth, Refusal::TooMany { limit: 3, .. }),
        "{fourth}"
    );
    set(&mut hive, "bob", "another's", 9_000);
    hive.crash();
    let ids = |rows: &[hive_store::sqlite::Reminder]| -> Vec<ReminderId> {
        rows.iter().map(|row| row.id).collect()
    };
    let of_ada = hive.run(|tx| tx.reminders_of(&agent("ada")));
    assert_eq!(ids(&of_ada), [first, same, late]);
    assert_eq!(hive.run(|tx| tx.next_reminder()), Some(at(now + 1_000)));
    assert!(hive.run(|tx| tx.take_due_reminders(100)).is_empty());
    hive.clock = now + 5_000;
    let undone = refused(&mut hive, |tx| {
        assert_eq!(tx.take_due_reminders(100)?.len(), 3);
        Err::<(), _>(Refusal::Denied("no".to_owned()))
    });
    assert!(matches!(undone, Refusal::Denied(_)));
    let fired = hive.run(|tx| tx.take_due_reminders(100));
    assert_eq!(ids(&fired), [first, same, late]);
    assert_eq!(
        (fired[0].body.as_str(), fired[0].agent.as_str()),
        ("first", "ada")
    );
    hive.crash();
    assert!(hive.run(|tx| tx.take_due_reminders(100)).is_empty());
    assert_eq!(hive.readers().counts().unwrap().reminders, 1);
    assert_eq!(hive.run(|tx| tx.next_reminder()), Some(at(now + 9_000)));
}

#[test]
fn m7_a_reminder_is_cancelled_by_its_owner() {
    let mut hive = Hive::new();
    let id = hive.run(|tx| tx.remind(&agent("ada"), "x", at(1), 50));
    let other = refused(&mut hive, |tx| tx.cancel_reminder(&agent("bob"), id));
    assert!(matches!(other, Refusal::NotFound { .. }), "{other}");
    let said = hive.run(|tx| tx.cancel_reminder(&agent("ada"), id));
    assert_eq!(said, "x");
    let twice = refused(&mut hive, |tx| tx.cancel_reminder(&agent("ada"), id));
    assert!(matches!(twice, Refusal::NotFound { .. }), "{twice}");
    assert_eq!(hive.run(|tx| tx.next_reminder()), None);
    let next = hive.run(|tx| tx.remind(&agent("ada"), "x", at(1), 50));
    assert!(next > id, "its id is not given again");
}

#[test]
fn m8_what_reminders_end_with_is_known_until_they_are_dealt_with() {
    let mut hive = Hive::new();
    let ada = agent("ada");
    hive.run(|tx| tx.remind(&ada, "pending: the end", at(9_000_000), 50));
    hive.run(|tx| tx.remind(&agent("bob"), "of another", at(9_000_000), 50));
    let fired = NewMessage::plain(
        "reminder".parse().unwrap(),
        ada.clone().into(),
        "fired: an ändé".to_owned(),
    );
    hive.run(|tx| tx.send(fired.clone()));
    let other = NewMessage::plain("bob".parse().unwrap(), ada.clone().into(), "hi".to_owned());
    hive.run(|tx| tx.send(other.clone()));
    let ends = |hive: &mut Hive| {
        let mut ends = hive.run(|tx| tx.open_reminder_ends(&ada, 5));
        ends.sort();
        ends
    };
    assert_eq!(ends(&mut hive), [" ändé", "e end"]);
}

#[test]
fn more_reminders_than_one_look_takes_are_taken_by_the_next() {
    let mut hive = Hive::new();
    for n in 0..150 {
        hive.run(|tx| tx.remind(&agent("ada"), "x", at(n), 1_000));
    }
    assert_eq!(hive.run(|tx| tx.take_due_reminders(100)).len(), 100);
    assert_eq!(hive.run(|tx| tx.take_due_reminders(100)).len(), 50);
}

fn schedule(name: &str, next_at: i64) -> NewSchedule {
    NewSchedule {
        agent: agent(name),
        prompt: "look around".to_owned(),
        cron: Some("0 9 * * *".to_owned()),
        time_zone: Some("Europe/Berlin".to_owned()),
        next_at: at(next_at),
    }
}

#[test]
fn schedules_are_due_moved_on_and_ended() {
    let mut hive = Hive::new();
    let now = hive.clock;
    let late = hive.run(|tx| tx.schedule(&schedule("ada", now + 5_000), 2));
    let soon = hive.run(|tx| tx.schedule(&schedule("ada", now + 1_000), 2));
    let third = refused(&mut hive, |tx| tx.schedule(&schedule("ada", now), 2));
    assert!(
        matches!(third, Refusal::TooMany { limit: 2, .. }),
        "{third}"
    );
    hive.run(|tx| tx.schedule(&schedule("bob", now + 90_000), 2));
    hive.crash();
    let ids = |rows: &[hive_store::sqlite::Schedule]| -> Vec<ScheduleId> {
        rows.iter().map(|row| row.id).collect()
    };
    let all = hive.readers().schedules(None).unwrap();
    assert_eq!(ids(&all)[..2], [soon, late]);
    let kept = &all[0].schedule;
    assert_eq!(kept.cron.as_deref(), Some("0 9 * * *"));
    assert_eq!(kept.time_zone.as_deref(), Some("Europe/Berlin"));
    assert_eq!(
        (kept.agent.as_str(), kept.next_at),
        ("ada", at(now + 1_000))
    );
    assert!(hive.run(|tx| tx.due_schedules(100)).is_empty());
    hive.clock = now + 10_000;
    assert_eq!(ids(&hive.run(|tx| tx.due_schedules(100))), [soon, late]);
    let sent = Firing::Sent(MessageId(7));
    hive.run(|tx| tx.fired(soon, Firing::LeftOut(3), Some(at(now + 20_000))));
    assert_eq!(hive.run(|tx| tx.next_schedule()), Some(at(now + 5_000)));
    hive.run(|tx| tx.fired(late, sent, None));
    let left_out = &hive.run(|tx| tx.schedules_of(&agent("ada")))[0];
    assert_eq!((left_out.missed, left_out.fired_at), (3, None));
    hive.run(|tx| tx.fired(soon, sent, Some(at(now + 60_000))));
    let fired_at = at(hive.clock);
    hive.crash();
    let fired = &hive.run(|tx| tx.schedules_of(&agent("ada")))[0];
    assert_eq!((fired.missed, fired.message), (0, Some(MessageId(7))));
    assert_eq!(fired.fired_at, Some(fired_at));
    assert!(hive.run(|tx| tx.due_schedules(100)).is_empty());
    assert_eq!(hive.readers().schedules(None).unwrap().len(), 2);
    let of_ada = hive.readers().schedules(Some(&agent("ada"))).unwrap();
    assert_eq!(ids(&of_ada), [soon]);
    let other = refused(&mut hive, |tx| {
        tx.cancel_schedule(Some(&agent("bob")), soon)
    });
    assert!(matches!(other, Refusal::NotFound { .. }), "{other}");
    hive.run(|tx| tx.cancel_schedule(Some(&agent("ada")), soon));
    let twice = refused(&mut hive, |tx| {
        tx.cancel_schedule(Some(&agent("ada")), soon)
    });
    assert!(matches!(twice, Refusal::NotFound { .. }), "{twice}");
    hive.run(|tx| tx.clear_schedules(&agent("bob")));
    assert!(hive.readers().schedules(None).unwrap().is_empty());
    assert_eq!(hive.run(|tx| tx.next_schedule()), None);
}

fn approval(hash: &str) -> NewApproval {
    NewApproval {
        kind: "apply".to_owned(),
        agent: "ada".to_owned(),
        requested_by: "ruth".to_owned(),
        commit_ref: Some("abc".to_owned()),
        diff: "+ line".to_owned(),
        hash: hash.to_owned(),
        reason: "because".to_owned(),
        parent: Some("ruth".to_owned()),
        expires_at: Some(LATER),
    }
}

/// After the tests' clock begins.
const LATER: Timestamp = Timestamp::from_millis(1_800_000_000_000);

#[test]
fn an_approval_is_decided_once_and_for_what_was_looked_at() {
    let mut hive = Hive::new();
    let id = hive.run(|tx| tx.request_approval(&approval("h1")));
    let created_at = at(hive.clock);
    let other = hive.run(|tx| tx.request_approval(&approval("h2")));
    hive.crash();
    let pending = hive.readers().pending_approvals().unwrap();
    assert_eq!((pending[0].id, &pending[0].request), (id, &approval("h1")));
    assert_eq!(
        (pending[0].state, pending[0].created_at),
        (ApprovalState::Pending, created_at)
    );
    let yes = ApprovalState::Approved;
    let stale = refused(&mut hive, |tx| tx.decide(id, Some("h0"), yes, ""));
    assert!(
        matches!(stale, Refusal::Conflict(_)) && stale.to_string().contains("h1"),
        "{stale}"
    );
    let nobody = refused(&mut hive, |tx| tx.decide(ApprovalId(99), None, yes, ""));
    assert!(matches!(nobody, Refusal::NotFound { .. }), "{nobody}");
    let decided = hive.run(|tx| tx.decide(id, Some("h1"), yes, "fine"));
    assert_eq!((decided.state, decided.note.as_str()), (yes, "fine"));
    assert_eq!(decided.decided_at, Some(at(hive.clock)));
    for state in [ApprovalState::Denied, ApprovalState::Approved] {
        let second = refused(&mut hive, |tx| tx.decide(id, None, state, ""));
        assert!(matches!(second, Refusal::Conflict(_)), "{second}");
    }
    hive.crash();
    let left: Vec<_> = hive.readers().pending_approvals().unwrap();
    assert_eq!((left.len(), left[0].id), (1, other));
    for (state, hash) in [
        (ApprovalState::Denied, "h2"),
        (ApprovalState::Failed, "h3"),
        (ApprovalState::Cancelled, "h4"),
        (ApprovalState::Expired, "h5"),
    ] {
        let id = match hash {
            "h2" => other,
            hash => hive.run(|tx| tx.request_approval(&approval(hash))),
        };
        assert_eq!(hive.run(|tx| tx.decide(id, None, state, "")).state, state);
        let second = refused(&mut hive, |tx| tx.decide(id, None, yes, ""));
        assert!(
            second.to_string().contains(&format!("{state:?}")),
            "{second}"
        );
    }
    assert!(hive.readers().pending_approvals().unwrap().is_empty());
}

#[test]
fn c14_permissions_are_replaced_as_a_whole() {
    let mut hive = Hive::new();
    assert_eq!(hive.readers().permissions().unwrap(), [], "defaults hold");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let first = Permissions {
        groups: names(&["lifecycle", "\"quoted\""]),
        capabilities: names(&["network"]),
        recipients: names(&["operator"]),
    };
    hive.run(|tx| tx.grant(&agent("ada"), &first));
    let when = at(hive.clock);
    hive.crash();
    let row = |granted| (agent("ada"), granted, when);
    assert_eq!(hive.readers().permissions().unwrap(), [row(first)]);
    hive.run(|tx| tx.grant(&agent("ada"), &Permissions::default()));
    let nothing = hive.readers().permissions().unwrap();
    assert_eq!(
        nothing[0].1,
        Permissions::default(),
        "less than the defaults"
    );
    hive.run(|tx| tx.revoke_all(&agent("ada")));
    assert_eq!(hive.readers().permissions().unwrap(), []);
}

#[test]
fn an_answer_under_a_key_is_remembered_for_a_day_and_for_one_request() {
    let mut hive = Hive::new();
    let key: hive_wire::SendKey = "k".parse().unwrap();
    let (ada, bob) = (agent("ada"), agent("bob"));
    assert_eq!(
        hive.run(|tx| tx.answered_before(&ada, &key, "remind a")),
        None
    );
    hive.run(|tx| tx.remember_answer(&ada, &key, "remind a", "{}"));
    hive.crash();
    let known = hive.run(|tx| tx.answered_before(&ada, &key, "remind a"));
    assert_eq!(known.as_deref(), Some("{}"));
    let other = refused(&mut hive, |tx| tx.answered_before(&ada, &key, "remind b"));
    assert!(matches!(other, Refusal::Conflict(_)), "{other}");
    assert_eq!(
        hive.run(|tx| tx.answered_before(&bob, &key, "remind a")),
        None,
        "a key is its agent's own"
    );
    hive.clock += 24 * 60 * 60 * 1_000 + 1;
    assert_eq!(
        hive.run(|tx| tx.answered_before(&ada, &key, "remind b")),
        None
    );
    let retention = hive_store::sqlite::Retention {
        messages: std::time::Duration::from_secs(1),
    };
    assert_eq!(hive.run(|tx| tx.prune(retention, 10)).keys, 1);
}

#[test]
fn who_waits_for_whom_is_read_from_the_open_questions() {
    let mut hive = Hive::new();
    let ask = |asker: &str, target: &str| NewQuestion {
        asker: asker.parse().unwrap(),
        target: target.parse().unwrap(),
        question: "why?".to_owned(),
        options: vec![],
        multi: false,
        expires_at: None,
    };
    hive.run(|tx| tx.ask(&ask("ada", "bob")));
    hive.run(|tx| tx.ask(&ask("ada", "bob")));
    hive.run(|tx| tx.ask(&ask("ada", "operator")));
    let answered = hive.run(|tx| tx.ask(&ask("bob", "cid")));
    let by = "cid".parse().unwrap();
    let end = QuestionEnd::Answered {
        by: &by,
        answer: "so",
    };
    hive.run(|tx| tx.end_question(answered, &end));
    let pairs = hive.run(|tx| tx.open_question_pairs());
    assert_eq!(pairs, [("ada".to_owned(), "bob".to_owned())]);
}

#[test]
fn a_hive_that_runs_can_be_looked_at_from_outside() {
    let mut hive = Hive::new();
    let id = hive.send("bob", "ada", "x");
    let outside = hive_store::Readers::open_file(&hive.path()).unwrap();
    assert!(outside.receipt(id).unwrap().is_some());
    hive.stop();
    let outside = hive_store::Readers::open_file(&hive.path()).unwrap();
    assert!(outside.receipt(id).unwrap().is_some());
    assert!(hive_store::Readers::open_file(&hive.file("-none")).is_err());
    assert!(!hive.file("-none").exists(), "looking makes nothing");
}

#[test]
fn c5_what_is_approved_is_carried_out_once_and_taken_up_after_a_crash() {
    let mut hive = Hive::new();
    let id = hive.run(|tx| tx.request_approval(&approval("h1")));
    let early = refused(&mut hive, |tx| tx.carry_out(id, None));
    assert!(matches!(early, Refusal::Conflict(_)), "{early}");
    hive.run(|tx| tx.renew_approval(id, "- line", "h2"));
    let stale = refused(&mut hive, |tx| {
        tx.decide(id, Some("h1"), ApprovalState::Approved, "")
    });
    assert!(stale.to_string().contains("h2"), "{stale}");
    hive.run(|tx| tx.decide(id, Some("h2"), ApprovalState::Approved, "go"));
    let late = refused(&mut hive, |tx| tx.renew_approval(id, "", "h3"));
    assert!(matches!(late, Refusal::Conflict(_)), "{late}");
    hive.crash();
    let due = hive.run(|tx| tx.approvals_to_carry_out());
    assert_eq!((due.len(), due[0].id, due[0].note.as_str()), (1, id, "go"));
    assert_eq!(due[0].request.diff, "- line");
    let done = hive.run(|tx| tx.carry_out(id, None));
    assert_eq!(done.state, ApprovalState::Approved);
    assert_eq!(done.carried_out_at, Some(at(hive.clock)));
    assert!(hive.run(|tx| tx.approvals_to_carry_out()).is_empty());
    let twice = refused(&mut hive, |tx| tx.carry_out(id, Some("no")));
    assert!(matches!(twice, Refusal::Conflict(_)), "{twice}");

    let other = hive.run(|tx| tx.request_approval(&approval("h4")));
    hive.run(|tx| tx.decide(other, None, ApprovalState::Approved, "go"));
    let failed = hive.run(|tx| tx.carry_out(other, Some("it did not start")));
    assert_eq!(
        (failed.state, failed.note.as_str()),
        (ApprovalState::Failed, "it did not start")
    );
    let all = hive.readers().approvals().unwrap();
    assert_eq!(
        all.iter().map(|one| one.id).collect::<Vec<_>>(),
        [other, id]
    );
}

#[test]
fn c5_an_approval_whose_time_is_up_can_only_expire() {
    let mut hive = Hive::new();
    let id = hive.run(|tx| tx.request_approval(&approval("h1")));
    assert_eq!(hive.run(|tx| tx.next_approval_expiry()), Some(LATER));
    assert!(hive.run(|tx| tx.expired_approvals(9)).is_empty());
    hive.clock = LATER.millis();
    for state in [ApprovalState::Approved, ApprovalState::Denied] {
        let late = refused(&mut hive, |tx| tx.decide(id, None, state, ""));
        assert!(late.to_string().contains("has expired"), "{late}");
    }
    assert_eq!(hive.run(|tx| tx.expired_approvals(9)), [id]);
    hive.run(|tx| tx.decide(id, None, ApprovalState::Expired, ""));
    assert!(hive.run(|tx| tx.expired_approvals(9)).is_empty());
    assert_eq!(hive.run(|tx| tx.next_approval_expiry()), None);
}
