-- What agents spent at the gateway, by the host's own count. `day` counts days since 1970, in UTC.
CREATE TABLE model_spend (
  day                   INTEGER NOT NULL,
  agent                 TEXT NOT NULL,
  calls                 INTEGER NOT NULL,
  input_tokens          INTEGER NOT NULL,
  output_tokens         INTEGER NOT NULL,
  cache_read_tokens     INTEGER NOT NULL,
  cache_creation_tokens INTEGER NOT NULL,
  cost_micro_usd        INTEGER NOT NULL,
  PRIMARY KEY (day, agent)
) STRICT, WITHOUT ROWID;

-- How a day's budget stands. `who` is an agent's name, or empty for the whole hive. `noted` says
-- that the operator knows of 80 %, `question` is the one about the cap, `raises` how often the
-- operator has granted the cap once more.
CREATE TABLE budget_days (
  day      INTEGER NOT NULL,
  who      TEXT NOT NULL,
  noted    INTEGER NOT NULL DEFAULT 0,
  question INTEGER,
  raises   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (day, who)
) STRICT, WITHOUT ROWID;

-- Who begins no turn, and why. `who` as above; `cause` is 'operator' or 'budget'.
CREATE TABLE pauses (
  who    TEXT NOT NULL,
  cause  TEXT NOT NULL,
  since  INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (who, cause)
) STRICT, WITHOUT ROWID;
