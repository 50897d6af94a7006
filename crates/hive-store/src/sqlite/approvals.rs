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
    /// The place in the tree of an agent that is asked for.
    pub parent: Option<String>,
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
    /// When what was approved had been done.
    pub carried_out_at: Option<Timestamp>,
    /// What the decider said, or why it failed.
    pub note: String,
}

/// The most approvals that one list holds.
const MAX_PENDING: u32 = 1_000;

const COLUMNS: &str = "SELECT id, kind, agent, requested_by, commit_ref, diff, hash, reason, \
                       parent, expires_at, state, created_at, decided_at, carried_out_at, note \
                       FROM approvals";

impl Tx<'_> {
    /// Writes a request down.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn request_approval(&mut self, new: &NewApproval) -> Result<ApprovalId, Refusal> {
        self.conn()?.execute(
            "INSERT INTO approvals (kind, agent, requested_by, commit_ref, diff, hash, reason, \
             parent, expires_at, state, created_at) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,0,?10)",
            params![
                new.kind,
                new.agent,
                new.requested_by,
                new.commit_ref,
                new.diff,
                new.hash,
                new.reason,
                new.parent,
                new.expires_at.map(Timestamp::millis),
                self.now.millis()
            ],
        )?;
        Ok(ApprovalId(self.conn()?.last_insert_rowid()))
    }

    /// An approval as it stands.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub fn approval(&self, id: ApprovalId) -> Result<Approval, Refusal> {
        self.conn()?
            .prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?
            .query_row([id.0], from_row)
            .optional()?
            .ok_or(Refusal::NotFound {
                what: "approval",
                id: id.to_string(),
            })
    }

    /// Approvals that wait for a decision, oldest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn pending_approvals(&self) -> Result<Vec<Approval>, Refusal> {
        Ok(pending(self.conn()?, MAX_PENDING)?)
    }

    /// Decides an approval. The first decision wins. With `hash`, it holds only for that content.
    /// One whose time is up can only become [`ApprovalState::Expired`].
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Conflict`] when it was decided before, when its time is
    /// up, or when the content is not the one that was looked at.
    pub fn decide(
        &mut self,
        id: ApprovalId,
        hash: Option<&str>,
        state: ApprovalState,
        note: &str,
    ) -> Result<Approval, Refusal> {
        let mut approval = self.approval(id)?;
        if approval.state != ApprovalState::Pending {
            let stands = approval.state;
            return Err(Refusal::Conflict(format!(
                "approval {id} was decided before: {stands:?}"
            )));
        }
        let is_over = approval.request.expires_at.is_some_and(|at| at <= self.now);
        let is_a_decision = matches!(state, ApprovalState::Approved | ApprovalState::Denied);
        if is_over && is_a_decision {
            return Err(Refusal::Conflict(format!("approval {id} has expired")));
        }
        if hash.is_some_and(|hash| hash != approval.request.hash) {
            return Err(Refusal::Conflict(format!(
                "approval {id} has changed since it was looked at: its hash is {}",
                approval.request.hash
            )));
        }
        self.conn()?.execute(
            "UPDATE approvals SET state = ?2, decided_at = ?3, note = ?4 WHERE id = ?1",
            params![id.0, state as i64, self.now.millis(), note],
        )?;
        approval.state = state;
        approval.decided_at = Some(self.now);
        note.clone_into(&mut approval.note);
        Ok(approval)
    }

    /// Shows a request that waits as it is now, because what it would change has changed.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Conflict`] when it waits no longer.
    pub fn renew_approval(
        &mut self,
        id: ApprovalId,
        diff: &str,
        hash: &str,
    ) -> Result<(), Refusal> {
        let stands = self.approval(id)?.state;
        if stands != ApprovalState::Pending {
            return Err(Refusal::Conflict(format!(
                "approval {id} was decided before: {stands:?}"
            )));
        }
        self.conn()?.execute(
            "UPDATE approvals SET diff = ?2, hash = ?3 WHERE id = ?1",
            params![id.0, diff, hash],
        )?;
        Ok(())
    }

    /// What was approved has been done, or could not be: `failure` says why.
    ///
    /// # Errors
    /// [`Refusal::NotFound`]; [`Refusal::Conflict`] when it is not approved, or done already.
    pub fn carry_out(
        &mut self,
        id: ApprovalId,
        failure: Option<&str>,
    ) -> Result<Approval, Refusal> {
        let mut approval = self.approval(id)?;
        if approval.state != ApprovalState::Approved || approval.carried_out_at.is_some() {
            return Err(Refusal::Conflict(format!(
                "approval {id} is not to be carried out: {:?}",
                approval.state
            )));
        }
        approval.carried_out_at = Some(self.now);
        if let Some(failure) = failure {
            approval.state = ApprovalState::Failed;
            failure.clone_into(&mut approval.note);
        }
        self.conn()?.execute(
            "UPDATE approvals SET state = ?2, carried_out_at = ?3, note = ?4 WHERE id = ?1",
            params![
                id.0,
                approval.state as i64,
                self.now.millis(),
                approval.note
            ],
        )?;
        Ok(approval)
    }

    /// Approvals that were decided and not carried out: a crash came between.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn approvals_to_carry_out(&self) -> Result<Vec<Approval>, Refusal> {
        let sql = format!(
            "{COLUMNS} WHERE state = 1 AND carried_out_at IS NULL ORDER BY id LIMIT {MAX_PENDING}"
        );
        let rows = self
            .conn()?
            .prepare_cached(&sql)?
            .query_map([], from_row)?
            .collect::<rusqlite::Result<_>>()?;
        Ok(rows)
    }

    /// At most `limit` approvals whose time is up, the first one first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn expired_approvals(&self, limit: u32) -> Result<Vec<ApprovalId>, Refusal> {
        let sql = "SELECT id FROM approvals WHERE state = 0 AND expires_at <= ?1 \
                   ORDER BY expires_at LIMIT ?2";
        let ids = self
            .conn()?
            .prepare_cached(sql)?
            .query_map(params![self.now.millis(), limit], |row| {
                row.get(0).map(ApprovalId)
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(ids)
    }

    /// When the next approval falls out.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn next_approval_expiry(&self) -> Result<Option<Timestamp>, Refusal> {
        let sql = "SELECT min(expires_at) FROM approvals \
                   WHERE state = 0 AND expires_at IS NOT NULL";
        let at: Option<i64> = self
            .conn()?
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))?;
        Ok(at.map(Timestamp::from_millis))
    }
}

pub(super) fn newest(conn: &Connection, limit: u32) -> rusqlite::Result<Vec<Approval>> {
    let sql = format!("{COLUMNS} ORDER BY id DESC LIMIT ?1");
    conn.prepare_cached(&sql)?
        .query_map([limit], from_row)?
        .collect()
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
            parent: row.get(8)?,
            expires_at: time(9)?,
        },
        state: match row.get(10)? {
            0 => ApprovalState::Pending,
            1 => ApprovalState::Approved,
            2 => ApprovalState::Denied,
            4 => ApprovalState::Cancelled,
            5 => ApprovalState::Expired,
            _ => ApprovalState::Failed,
        },
        created_at: Timestamp::from_millis(row.get(11)?),
        decided_at: time(12)?,
        carried_out_at: time(13)?,
        note: row.get(14)?,
    })
}
