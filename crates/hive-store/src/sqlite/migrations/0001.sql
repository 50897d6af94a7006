CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- What was said: written once, never changed. `size` is the body's length as JSON.
CREATE TABLE messages (
  id          INTEGER PRIMARY KEY,
  sender      TEXT NOT NULL,
  recipient   TEXT NOT NULL,
  body        TEXT NOT NULL,
  in_reply_to INTEGER,
  thread      INTEGER,
  sent_at     INTEGER NOT NULL,
  size        INTEGER NOT NULL,
  checksum    INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_thread ON messages (thread) WHERE thread IS NOT NULL;

-- Where a message stands. Small rows, because they are rewritten while bodies are not.
-- state: 0 stored, 1 leased, 2 acked, 3 dead, 4 discarded.
CREATE TABLE mail (
  id         INTEGER PRIMARY KEY,
  recipient  TEXT NOT NULL,
  state      INTEGER NOT NULL,
  deliveries INTEGER NOT NULL,
  failures   INTEGER NOT NULL,
  turn       INTEGER,
  req        TEXT,
  confirmed  INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
-- Partial, so that they are as small as what is open, however long the history.
CREATE INDEX mail_stored ON mail (recipient, id) WHERE state = 0;
CREATE INDEX mail_leased ON mail (turn, id) WHERE state = 1;
CREATE INDEX mail_dead ON mail (id) WHERE state = 3;

-- outcome: NULL open, 1 acked, 2 requeued, 3 displaced by a newer turn.
CREATE TABLE turns (
  seq       INTEGER PRIMARY KEY,
  agent     TEXT NOT NULL,
  name      TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  ended_at  INTEGER,
  outcome   INTEGER,
  acked     INTEGER NOT NULL DEFAULT 0,
  requeued  INTEGER NOT NULL DEFAULT 0,
  dead      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX turns_open ON turns (agent) WHERE outcome IS NULL;

CREATE TABLE send_keys (
  sender  TEXT NOT NULL,
  key     TEXT NOT NULL,
  message INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (sender, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX send_keys_age ON send_keys (used_at);

-- Who took part in which message, for the history of one agent. Filled in the background in
-- batches (see correspondence.rs): an index on messages would dirty a page per agent and commit.
CREATE TABLE correspondence (
  party   TEXT NOT NULL,
  message INTEGER NOT NULL,
  PRIMARY KEY (party, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
  name         TEXT PRIMARY KEY,
  parent       TEXT,
  runtime      TEXT NOT NULL,
  port         INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  destroyed_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE questions (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  asker       TEXT NOT NULL,
  target      TEXT NOT NULL,
  question    TEXT NOT NULL,
  options     TEXT NOT NULL,
  multi       INTEGER NOT NULL,
  asked_at    INTEGER NOT NULL,
  expires_at  INTEGER,
  answer      TEXT,
  answered_at INTEGER
) STRICT;
CREATE INDEX questions_owed ON questions (target) WHERE answer IS NULL;
CREATE INDEX questions_asked ON questions (asker) WHERE answer IS NULL;
CREATE INDEX questions_expiry ON questions (expires_at) WHERE answer IS NULL AND expires_at IS NOT NULL;

CREATE TABLE reminders (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  agent  TEXT NOT NULL,
  body   TEXT NOT NULL,
  due_at INTEGER NOT NULL
) STRICT;
CREATE INDEX reminders_agent ON reminders (agent);
CREATE INDEX reminders_due ON reminders (due_at);

CREATE TABLE schedules (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  agent      TEXT NOT NULL,
  prompt     TEXT NOT NULL,
  cron       TEXT,
  time_zone  TEXT,
  next_at    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_agent ON schedules (agent);
CREATE INDEX schedules_next ON schedules (next_at);

-- state: 0 pending, 1 approved, 2 denied, 3 failed, 4 cancelled, 5 expired.
CREATE TABLE approvals (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  kind         TEXT NOT NULL,
  agent        TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  commit_ref   TEXT,
  diff         TEXT NOT NULL,
  hash         TEXT NOT NULL,
  reason       TEXT NOT NULL,
  state        INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  decided_at   INTEGER,
  note         TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX approvals_pending ON approvals (id) WHERE state = 0;

-- What the operator granted, as JSON lists of names. No row: the defaults hold.
CREATE TABLE permissions (
  agent        TEXT PRIMARY KEY,
  groups       TEXT NOT NULL,
  capabilities TEXT NOT NULL,
  changed_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
