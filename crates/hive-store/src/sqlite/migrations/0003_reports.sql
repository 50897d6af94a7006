-- What agents report of themselves. `turn_rows` counts the agent's rows in turn_counts.
CREATE TABLE agent_reports (
  agent         TEXT PRIMARY KEY,
  status_text   TEXT NOT NULL DEFAULT '',
  status_set_at INTEGER,
  turn_rows     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- One row for each run of an engine. `messages` and `tools` are JSON lists; `started_at` is what
-- the agent says, `posted_at` what the host's clock said.
CREATE TABLE turn_counts (
  id                    INTEGER PRIMARY KEY AUTOINCREMENT,
  agent                 TEXT NOT NULL,
  turn                  TEXT NOT NULL,
  kind                  TEXT NOT NULL,
  started_at            INTEGER NOT NULL,
  posted_at             INTEGER NOT NULL,
  duration_ms           INTEGER NOT NULL,
  engine_ms             INTEGER NOT NULL,
  model                 TEXT NOT NULL,
  input_tokens          INTEGER NOT NULL,
  output_tokens         INTEGER NOT NULL,
  cache_read_tokens     INTEGER NOT NULL,
  cache_creation_tokens INTEGER NOT NULL,
  cost_micro_usd        INTEGER NOT NULL,
  context_tokens        INTEGER NOT NULL,
  window                INTEGER NOT NULL,
  outcome               TEXT NOT NULL,
  note                  TEXT,
  session_id            TEXT,
  messages              TEXT NOT NULL,
  tools                 TEXT NOT NULL
) STRICT;
CREATE INDEX turn_counts_agent ON turn_counts (agent);
CREATE UNIQUE INDEX turn_counts_once ON turn_counts (agent, turn, kind, started_at);

-- What the rows add up to; kept longer than they are. `day` counts days since 1970, in UTC.
CREATE TABLE turn_totals (
  day                   INTEGER NOT NULL,
  agent                 TEXT NOT NULL,
  turns                 INTEGER NOT NULL,
  failed                INTEGER NOT NULL,
  deferred              INTEGER NOT NULL,
  input_tokens          INTEGER NOT NULL,
  output_tokens         INTEGER NOT NULL,
  cache_read_tokens     INTEGER NOT NULL,
  cache_creation_tokens INTEGER NOT NULL,
  cost_micro_usd        INTEGER NOT NULL,
  duration_ms           INTEGER NOT NULL,
  engine_ms             INTEGER NOT NULL,
  PRIMARY KEY (day, agent)
) STRICT, WITHOUT ROWID;
