//! Approvals: requested with the exact content and its hash, decided once.

use hive_wire::{ApprovalId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Tx;
use crate::Refusal;

/// Something that needs the operator's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    /// `spawn` or `apply`.
    pub kind: String,
    /// The agent it is about.
    pub agent: String,
    /// Who asks for it.
    pub requested_by: String,
    /// The commit it is about.
    pub commit_ref: Option<String>,
    /// What would change, as shown to the operator.
    pub diff: String,
    /// The hash of what would change.
    pub hash: String,
    /// Why, in the requester's words.
    pub reason: String,
    /// When it falls out.
    pub expires_at: Option<Timestamp>,
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// It waits.
    Pending = 0,
    /// The operator said yes.
    Approved = 1,
    /// The operator said no.
    Denied = 2,
    /// It could not be carried out.
    Failed = 3,
    /// Its requester took it back.
    Cancelled = 4,
    /// Nobody decided in time.
    Expired = 5,
}

/// An approval with where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// What was requested.
    pub request: NewApproval,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When it was decided.
    pub decided_at: Option<Timestamp>,
    /// What the decider said.
    pub note: String,
}

const COLUMNS: &str = "SELECT id, kind, agent, requested_by, commit_ref, diff, hash, reason, \
                       expires_at, state, created_at, decided_at, note FROM approvals";

impl Tx<'_> {
    /// Writes a request down.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn request_approval(&mut self, new: &NewApproval) -> Result<ApprovalId, Refusal> {
        self.conn.execute(
            "INSERT INTO approvals (kind, agent, requested_by, commit_ref, diff, hash, reason, \
             expires_at, state, created_at) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,0,?9)",
            params![
                new.kind,
                new.agent,
                new.requested_by,
                new.commit_ref,
                new.diff,
                new.hash,
                new.reason,
                new.expires_at.map(Timestamp::millis),
                self.now.millis()
            ],
        )?;
        Ok(ApprovalId(self.conn.last_insert_rowid()))
    }

    /// Decides an approval. The first decision wins. With `hash`, it holds only for that content.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Conflict`] when it was decided before or the content is
    /// not the one that was looked at.
    pub fn decide(
        &mut self,
        id: ApprovalId,
        hash: Option<&str>,
        state: ApprovalState,
        note: &str,
    ) -> Result<Approval, Refusal> {
        let mut approval = self
            .conn
            .prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?
            .query_row([id.0], from_row)
            .optional()?
            .ok_or(Refusal::NotFound {
                what: "approval",
                id: id.to_string(),
            })?;
        if approval.state != ApprovalState::Pending {
            let stands = approval.state;
            return Err(Refusal::Conflict(format!(
                "approval {id} was decided before: {stands:?}"
            )));
        }
        if hash.is_some_and(|hash| hash != approval.request.hash) {
            return Err(Refusal::Conflict(format!(
                "approval {id} has changed since it was looked at: its hash is {}",
                approval.request.hash
            )));
        }
        self.conn.execute(
            "UPDATE approvals SET state = ?2, decided_at = ?3, note = ?4 WHERE id = ?1",
            params![id.0, state as i64, self.now.millis(), note],
        )?;
        approval.state = state;
        approval.decided_at = Some(self.now);
        note.clone_into(&mut approval.note);
        Ok(approval)
    }
}

impl Tx<'_> {
    /// Approvals that wait for a decision, oldest first, at most two hundred.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn pending_approvals(&self) -> Result<Vec<Approval>, Refusal> {
        pending(self.conn, 200).map_err(Refusal::Sqlite)
    }
}

pub(super) fn pending(conn: &Connection, limit: u32) -> rusqlite::Result<Vec<Approval>> {
    let sql = format!("{COLUMNS} WHERE state = 0 ORDER BY id LIMIT ?1");
    conn.prepare_cached(&sql)?
        .query_map([limit], from_row)?
        .collect()
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let time = |column| {
        row.get::<_, Option<i64>>(column)
            .map(|at| at.map(Timestamp::from_millis))
    };
    Ok(Approval {
        id: ApprovalId(row.get(0)?),
        request: NewApproval {
            kind: row.get(1)?,
            agent: row.get(2)?,
            requested_by: row.get(3)?,
            commit_ref: row.get(4)?,
            diff: row.get(5)?,
            hash: row.get(6)?,
            reason: row.get(7)?,
            expires_at: time(8)?,
        },
        state: match row.get(9)? {
            0 => ApprovalState::Pending,
            1 => ApprovalState::Approved,
            2 => ApprovalState::Denied,
            4 => ApprovalState::Cancelled,
            5 => ApprovalState::Expired,
            _ => ApprovalState::Failed,
        },
        created_at: Timestamp::from_millis(row.get(10)?),
        decided_at: time(11)?,
        note: row.get(12)?,
    })
}
