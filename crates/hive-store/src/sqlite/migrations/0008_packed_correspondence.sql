-- Who took part in which message, many messages to a row: a row for each of them and party cost more
-- than storing the message. `messages` holds distances from `first`, four bytes each, lowest byte
-- first, ascending. What was indexed is indexed anew in the background.
DROP TABLE correspondence;
CREATE TABLE correspondence (
  party    TEXT NOT NULL,
  first    INTEGER NOT NULL,
  messages BLOB NOT NULL,
  PRIMARY KEY (party, first)
) STRICT, WITHOUT ROWID;
UPDATE meta SET value = 0 WHERE key = 'indexed_messages';
