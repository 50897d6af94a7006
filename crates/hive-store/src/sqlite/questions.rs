//! Questions: asked once, answered once, by whoever comes first.

use hive_wire::{AgentName, QuestionId, Recipient, SenderLabel, Timestamp, host::QuestionRow};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Tx, readers::label_from};
use crate::Refusal;

/// A question that is to be asked.
#[derive(Debug, Clone)]
pub struct NewQuestion {
    /// Who asks.
    pub asker: SenderLabel,
    /// Who is to answer.
    pub target: Recipient,
    /// The question.
    pub question: String,
    /// Suggested answers.
    pub options: Vec<String>,
    /// Whether several of them may be chosen.
    pub multi: bool,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// Who ends a question, and how.
#[derive(Debug, Clone)]
pub enum QuestionEnd<'a> {
    /// Its target answers.
    Answered {
        /// Who answers.
        by: &'a Recipient,
        /// The answer.
        answer: &'a str,
    },
    /// Its asker takes it back.
    Cancelled {
        /// Who asked.
        by: &'a AgentName,
    },
    /// Its time ran out.
    Expired,
    /// The operator did away with one of the two.
    Gone,
}

const COLUMNS: &str = "SELECT id, asker, target, question, options, multi, asked_at, expires_at, \
                       answer, answered_at FROM questions";

impl Tx<'_> {
    /// Writes a question down.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn ask(&mut self, question: &NewQuestion) -> Result<QuestionId, Refusal> {
        let options = serde_json::to_string(&question.options).expect("strings encode");
        self.conn()?.execute(
            "INSERT INTO questions (asker, target, question, options, multi, asked_at, expires_at) \
             VALUES (?1,?2,?3,?4,?5,?6,?7)",
            params![
                question.asker.as_str(),
                question.target.as_str(),
                question.question,
                options,
                question.multi,
                self.now.millis(),
                question.expires_at.map(Timestamp::millis)
            ],
        )?;
        Ok(QuestionId(self.conn()?.last_insert_rowid()))
    }

    /// Ends a question that is open; the row as it stands afterwards.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Denied`] for one who is neither target nor asker as the
    /// case may be, and [`Refusal::Conflict`] when it has ended before.
    pub fn end_question(
        &mut self,
        id: QuestionId,
        end: &QuestionEnd<'_>,
    ) -> Result<QuestionRow, Refusal> {
        let mut row = self
            .conn()?
            .prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?
            .query_row([id.0], row_from)
            .optional()?
            .ok_or(Refusal::NotFound {
                what: "question",
                id: id.to_string(),
            })?;
        let answer = match end {
            QuestionEnd::Answered { by, answer } if by.as_str() == row.target => {
                (*answer).to_owned()
            }
            QuestionEnd::Cancelled { by } if by.as_str() == row.asker.as_str() => {
                format!("[cancelled by {by}]")
            }
            QuestionEnd::Expired => "[expired]".to_owned(),
            QuestionEnd::Gone => "[cancelled by operator]".to_owned(),
            QuestionEnd::Answered { .. } => {
                return Err(Refusal::Denied(format!(
                    "question {id} was put to {}",
                    row.target
                )));
            }
            QuestionEnd::Cancelled { .. } => {
                return Err(Refusal::Denied(format!(
                    "question {id} was asked by {}",
                    row.asker
                )));
            }
        };
        if let Some(earlier) = &row.answer {
            let earlier = hive_wire::text::shorten(earlier, 80);
            return Err(Refusal::Conflict(format!(
                "question {id} has its answer: {earlier}"
            )));
        }
        self.conn()?.execute(
            "UPDATE questions SET answer = ?2, answered_at = ?3 WHERE id = ?1",
            params![id.0, answer, self.now.millis()],
        )?;
        row.answer = Some(answer);
        row.answered_at = Some(self.now);
        Ok(row)
    }

    /// Open questions that an agent asked or owes an answer to, oldest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn open_questions_of(&self, agent: &AgentName) -> Result<Vec<QuestionRow>, Refusal> {
        // The plus keeps SQLite from walking all questions in the order of their ids.
        let sql = format!(
            "{COLUMNS} WHERE answer IS NULL AND (asker = ?1 OR target = ?1) ORDER BY +id LIMIT 200"
        );
        let rows: rusqlite::Result<_> = self
            .conn()?
            .prepare_cached(&sql)?
            .query_map([agent.as_str()], row_from)?
            .collect();
        rows.map_err(Refusal::Sqlite)
    }

    /// Who waits for whom: asker and target of every open question between agents, each pair once.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn open_question_pairs(&self) -> Result<Vec<(String, String)>, Refusal> {
        let sql = "SELECT DISTINCT asker, target FROM questions INDEXED BY questions_asked \
                   WHERE answer IS NULL AND target <> 'operator' LIMIT 10000";
        let pairs: rusqlite::Result<_> = self
            .conn()?
            .prepare_cached(sql)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect();
        pairs.map_err(Refusal::Sqlite)
    }

    /// How many questions of this asker wait for an answer of this agent.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn count_open_between(
        &self,
        asker: &SenderLabel,
        target: &AgentName,
    ) -> Result<u32, Refusal> {
        let sql = "SELECT count(*) FROM questions INDEXED BY questions_asked \
                   WHERE answer IS NULL AND asker = ?1 AND target = ?2";
        Ok(self
            .conn()?
            .prepare_cached(sql)?
            .query_row(params![asker.as_str(), target.as_str()], |row| row.get(0))?)
    }

    /// How many questions of this asker wait for an answer.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn count_open_questions(&self, asker: &SenderLabel) -> Result<u32, Refusal> {
        let sql = "SELECT count(*) FROM questions WHERE answer IS NULL AND asker = ?1";
        Ok(self
            .conn()?
            .prepare_cached(sql)?
            .query_row([asker.as_str()], |row| row.get(0))?)
    }

    /// Open questions whose time has run out, at most `limit`.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn expired_questions(&self, limit: u32) -> Result<Vec<QuestionId>, Refusal> {
        let sql = "SELECT id FROM questions WHERE answer IS NULL AND expires_at <= ?1 \
                   ORDER BY expires_at, id LIMIT ?2";
        let ids = self
            .conn()?
            .prepare_cached(sql)?
            .query_map(params![self.now.millis(), limit], |row| {
                row.get(0).map(QuestionId)
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(ids)
    }

    /// When the next open question expires.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn next_expiry(&self) -> Result<Option<Timestamp>, Refusal> {
        let sql = "SELECT min(expires_at) FROM questions \
                   WHERE answer IS NULL AND expires_at IS NOT NULL";
        let at: Option<i64> = self
            .conn()?
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))?;
        Ok(at.map(Timestamp::from_millis))
    }
}

pub(super) fn list(
    conn: &Connection,
    all: bool,
    target: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<QuestionRow>> {
    const WANTED: &str = "(?2 IS NULL OR target = ?2)";
    // In the order of ids, SQLite would walk every question there ever was for the few that are open.
    let sql = if all {
        format!("SELECT * FROM ({COLUMNS} WHERE {WANTED} ORDER BY id DESC LIMIT ?1) ORDER BY id")
    } else {
        format!("{COLUMNS} WHERE answer IS NULL AND {WANTED} ORDER BY +id LIMIT ?1")
    };
    conn.prepare_cached(&sql)?
        .query_map(params![limit, target], row_from)?
        .collect()
}

fn row_from(row: &Row<'_>) -> rusqlite::Result<QuestionRow> {
    let time = |column| {
        row.get::<_, Option<i64>>(column)
            .map(|at| at.map(Timestamp::from_millis))
    };
    Ok(QuestionRow {
        question_id: QuestionId(row.get(0)?),
        asker: label_from(row, 1)?,
        target: row.get(2)?,
        question: row.get(3)?,
        options: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default(),
        multi: row.get(5)?,
        asked_at: Timestamp::from_millis(row.get(6)?),
        expires_at: time(7)?,
        answer: row.get(8)?,
        answered_at: time(9)?,
    })
}
