-- A message that is held names its turn, so that an open turn needs a row of its own only while it
-- holds nothing: receiving and acking then write one page less.
-- held_by, held_since: the open turn that holds it; turn: the ended turn that a dead letter failed in.
CREATE TABLE new_mail (
  recipient  TEXT NOT NULL,
  state      INTEGER NOT NULL,
  message    INTEGER NOT NULL,
  deliveries INTEGER NOT NULL,
  failures   INTEGER NOT NULL,
  turn       INTEGER,
  held_by    TEXT,
  held_since INTEGER,
  req        TEXT,
  confirmed  INTEGER NOT NULL,
  PRIMARY KEY (recipient, state, message)
) STRICT, WITHOUT ROWID;
INSERT INTO new_mail
  SELECT m.recipient, m.state, m.message, m.deliveries, m.failures,
    CASE WHEN m.state = 3 THEN m.turn END,
    CASE WHEN m.state = 1 THEN o.name END,
    CASE WHEN m.state = 1 THEN o.opened_at END,
    m.req, m.confirmed
  FROM mail m LEFT JOIN open_turns o ON o.agent = m.recipient;
DROP TABLE mail;
ALTER TABLE new_mail RENAME TO mail;
CREATE INDEX mail_dead ON mail (message) WHERE state = 3;

-- Open turns that were answered while they held nothing. A turn gets its number when it ends.
CREATE TABLE new_open_turns (
  agent     TEXT PRIMARY KEY,
  name      TEXT NOT NULL,
  opened_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO new_open_turns SELECT agent, name, opened_at FROM open_turns;
DROP TABLE open_turns;
ALTER TABLE new_open_turns RENAME TO open_turns;
