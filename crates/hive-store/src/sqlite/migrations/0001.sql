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

-- Mail that is not settled: small, however long the history. Its one tree is every inbox's queue
-- and, because an agent has at most one open turn, also the list of what that turn holds.
-- state: 0 stored, 1 leased, 3 dead.
CREATE TABLE mail (
  recipient  TEXT NOT NULL,
  state      INTEGER NOT NULL,
  message    INTEGER NOT NULL,
  deliveries INTEGER NOT NULL,
  failures   INTEGER NOT NULL,
  turn       INTEGER,
  req        TEXT,
  confirmed  INTEGER NOT NULL,
  PRIMARY KEY (recipient, state, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_dead ON mail (message) WHERE state = 3;

-- How a message's way ended; appended to. state: 2 acked, 4 discarded.
CREATE TABLE receipts (
  message    INTEGER PRIMARY KEY,
  state      INTEGER NOT NULL,
  deliveries INTEGER NOT NULL,
  turn       INTEGER,
  settled_at INTEGER NOT NULL
) STRICT;

CREATE TABLE open_turns (
  agent     TEXT PRIMARY KEY,
  seq       INTEGER NOT NULL,
  name      TEXT NOT NULL,
  opened_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Turns that ended; appended to. outcome: 1 acked, 2 requeued, 3 displaced by a newer turn.
CREATE TABLE turns (
  seq       INTEGER PRIMARY KEY,
  agent     TEXT NOT NULL,
  name      TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  ended_at  INTEGER NOT NULL,
  outcome   INTEGER NOT NULL,
  acked     INTEGER NOT NULL,
  requeued  INTEGER NOT NULL,
  dead      INTEGER NOT NULL
) STRICT;

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
