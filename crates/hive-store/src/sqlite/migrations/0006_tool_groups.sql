-- Whom an agent may write to besides its parent and the operator, as a JSON list; empty: everybody.
ALTER TABLE permissions ADD COLUMN recipients TEXT NOT NULL DEFAULT '[]';

-- When a schedule fired last, the message it sent then, and how often it was left out since.
ALTER TABLE schedules ADD COLUMN fired_at INTEGER;
ALTER TABLE schedules ADD COLUMN message INTEGER;
ALTER TABLE schedules ADD COLUMN missed INTEGER NOT NULL DEFAULT 0;

-- What was answered to a command that its caller gave a key, for as long as a key lives.
CREATE TABLE command_keys (
  agent   TEXT NOT NULL,
  key     TEXT NOT NULL,
  request TEXT NOT NULL,
  reply   TEXT NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (agent, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX command_keys_age ON command_keys (used_at);
