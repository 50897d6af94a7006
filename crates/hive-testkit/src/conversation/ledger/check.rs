//! Compares what was said with what was heard, and both with what the hive has on disk.

use std::collections::{BTreeMap, BTreeSet};

use hive_wire::{
    MessageId, QuestionId,
    agent::MessageState,
    client::{Client, ClientError},
    host::{History, HistoryRow, LookUpReceipt, QuestionRow, Questions},
};

use super::{Ledger, Memory, Query, Words};
use crate::hive::TestHive;

impl Ledger {
    /// What should not be.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub(in crate::conversation) async fn check(
        &self,
        hive: &TestHive,
    ) -> anyhow::Result<Vec<String>> {
        let host = hive.host_client();
        let mut violations = self.lock().check();
        let said: Vec<MessageId> = self.lock().said.keys().copied().collect();
        for message_id in said {
            match host.call(&LookUpReceipt { message_id }).await {
                Ok(receipt) if receipt.state == MessageState::Acked => {}
                Ok(receipt) => violations.push(format!("{receipt:?}: it should be acked")),
                Err(ClientError::Refused(error)) => {
                    violations.push(format!("message {message_id} has no receipt: {error}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let history = history(&host).await?;
        violations.extend(self.lock().check_history(&history));
        let open = host.call(&Questions::default()).await?.questions;
        violations.extend(open.iter().map(|row| format!("nobody ended {row:?}")));
        let every = Questions {
            all: true,
            ..Questions::default()
        };
        let all = host.call(&every).await?.questions;
        violations.extend(self.lock().check_questions(&all));
        Ok(violations)
    }
}

/// Every message that the hive has.
async fn history(host: &Client) -> anyhow::Result<Vec<HistoryRow>> {
    let mut rows = Vec::new();
    let mut before = None;
    loop {
        let page = History {
            before,
            limit: Some(200),
            ..History::default()
        };
        let page = host.call(&page).await?;
        rows.extend(page.messages);
        before = page.next;
        if before.is_none() {
            return Ok(rows);
        }
    }
}

impl Memory {
    /// What can be told from memory alone.
    fn check(&self) -> Vec<String> {
        let mut violations = Vec::new();
        self.check_messages(&mut violations);
        self.check_reminders(&mut violations);
        for (id, queries) in &self.asked {
            match only(queries) {
                Some(query) => self.check_question(*id, query, &mut violations),
                None => violations.push(format!("question {id} is several: {queries:?}")),
            }
        }
        let strays = [
            ("put to somebody", self.put.keys().collect::<Vec<_>>()),
            ("answered", self.answered.keys().collect()),
            ("cancelled", self.cancelled.keys().collect()),
            ("withdrawn", self.withdrawn.keys().collect()),
            ("ended", self.ended.keys().collect()),
        ];
        for (what, ids) in strays {
            for id in ids.iter().filter(|id| !self.asked.contains_key(id)) {
                violations.push(format!("question {id} was {what} and never asked"));
            }
        }
        violations
    }

    /// Every message was heard as it was said, by the one it was sent to, and once.
    fn check_messages(&self, violations: &mut Vec<String>) {
        let mut ids: BTreeMap<&Words, MessageId> = BTreeMap::new();
        for (id, said) in &self.said {
            let Some(words) = only(said) else {
                violations.push(format!("message {id} is several: {said:?}"));
                continue;
            };
            if let Some(earlier) = ids.insert(words, *id) {
                violations.push(format!("{words:?} was sent as {earlier} and as {id}"));
            }
            let heard = self.heard.get(id).cloned().unwrap_or_default();
            if heard != BTreeSet::from([(words.to.clone(), words.clone())]) {
                violations.push(format!("{id} was said as {words:?} and heard as {heard:?}"));
            }
        }
        for (id, heard) in &self.heard {
            if !self.said.contains_key(id) {
                violations.push(format!("{id} was heard and never said: {heard:?}"));
            }
        }
    }

    /// Every reminder fired once, for the one who set it, with what it was to say.
    fn check_reminders(&self, violations: &mut Vec<String>) {
        for reminder in &self.set {
            let times = self.fired.get(reminder).map_or(0, BTreeSet::len);
            if times != 1 {
                violations.push(format!("reminder {reminder:?} fired {times} times"));
            }
        }
        for reminder in self.fired.keys().filter(|one| !self.set.contains(*one)) {
            violations.push(format!("reminder {reminder:?} fired and was never set"));
        }
    }

    /// The question reached its target as it was asked, and its asker heard once how it ended.
    fn check_question(&self, id: QuestionId, query: &Query, violations: &mut Vec<String>) {
        match self.put.get(&id).and_then(only) {
            Some((_, heard)) if heard == query => {}
            _ => violations.push(format!(
                "question {id} was asked as {query:?} and heard as {:?}",
                self.put.get(&id)
            )),
        }
        let expected = match self.end_of(id, query) {
            Ok(expected) => expected,
            Err(violation) => return violations.push(violation),
        };
        match self.ended.get(&id).and_then(only) {
            Some(news)
                if news.to == query.asker
                    && news.question == query.question
                    && news.answer == expected => {}
            _ => violations.push(format!(
                "question {id} of {} ended with {expected:?} and the news of it is {:?}",
                query.asker,
                self.ended.get(&id)
            )),
        }
        let told = self.withdrawn.get(&id).into_iter().flatten();
        let told: Vec<&String> = told.map(|(_, to)| to).collect();
        let due = match self.cancelled.contains_key(&id) {
            true => vec![&query.target],
            false => Vec::new(),
        };
        if told != due {
            violations.push(format!(
                "that question {id} was taken back was told to {told:?}, not to {due:?}"
            ));
        }
    }

    /// The answer that the asker of a question has to hear, from what others say they did.
    fn end_of(&self, id: QuestionId, query: &Query) -> Result<String, String> {
        let answered = self.answered.get(&id);
        let cancelled = self.cancelled.get(&id);
        match (answered, cancelled) {
            (Some(answers), None) => match only(answers) {
                Some((by, answer)) if *by == query.target => Ok(answer.clone()),
                _ => Err(format!("question {id} took these answers: {answers:?}")),
            },
            (None, Some(by)) => match only(by) {
                Some(by) if *by == query.asker => Ok(format!("[cancelled by {by}]")),
                _ => Err(format!("question {id} could be taken back by {by:?}")),
            },
            (None, None) if query.expires => Ok("[expired]".to_owned()),
            (None, None) => Err(format!(
                "question {id} does not expire, and nobody ended it: {:?}",
                self.ended.get(&id)
            )),
            (Some(answers), Some(by)) => Err(format!(
                "question {id} was answered with {answers:?} and taken back by {by:?}"
            )),
        }
    }

    /// What the hive has of every message is what was said.
    fn check_history(&self, rows: &[HistoryRow]) -> Vec<String> {
        let rows: BTreeMap<MessageId, &HistoryRow> = rows
            .iter()
            .map(|row| (row.receipt.message_id, row))
            .collect();
        let differs = |(id, said): (&MessageId, &BTreeSet<Words>)| {
            let row = rows.get(id);
            let kept = row.map(|row| Words {
                from: row.receipt.from.to_string(),
                to: row.receipt.to.clone(),
                body: row.body.clone(),
                in_reply_to: row.in_reply_to,
            });
            (kept.as_ref() != only(said))
                .then(|| format!("message {id} was said as {said:?} and is kept as {row:?}"))
        };
        self.said.iter().filter_map(differs).collect()
    }

    /// What the hive has of the questions is what was asked, and the end that its asker heard of.
    /// Of many questions the list has some that follow each other, as many as fit.
    fn check_questions(&self, rows: &[QuestionRow]) -> Vec<String> {
        let rows: BTreeMap<QuestionId, &QuestionRow> =
            rows.iter().map(|row| (row.question_id, row)).collect();
        let ends = rows.first_key_value().zip(rows.last_key_value());
        let Some(((first, _), (last, _))) = ends else {
            let lost = self.asked.keys().map(|id| format!("question {id} is lost"));
            return lost.collect();
        };
        let differs = |(id, asked): (&QuestionId, &BTreeSet<Query>)| {
            let row = rows.get(id);
            let kept = row.map(|row| Query {
                asker: row.asker.to_string(),
                target: row.target.clone(),
                question: row.question.clone(),
                options: row.options.clone(),
                multi: row.multi,
                expires: row.expires_at.is_some(),
            });
            let heard = self.ended.get(id).and_then(only);
            let answer = heard.map(|news| news.answer.as_str());
            let is_same =
                kept.as_ref() == only(asked) && row.and_then(|row| row.answer.as_deref()) == answer;
            (!is_same).then(|| {
                format!("question {id} is {asked:?}, ended with {answer:?}, and kept as {row:?}")
            })
        };
        let listed = self.asked.range(first..=last);
        listed.filter_map(differs).collect()
    }
}

/// The element of a set that has one.
fn only<T: Ord>(set: &BTreeSet<T>) -> Option<&T> {
    set.first().filter(|_| set.len() == 1)
}

#[cfg(test)]
mod tests;
