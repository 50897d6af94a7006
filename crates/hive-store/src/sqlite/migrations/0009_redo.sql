-- The number of the last group that is in the database. What the redo journal has beyond it is
-- brought in at the start.
CREATE TABLE redo (number INTEGER NOT NULL) STRICT;
INSERT INTO redo VALUES (0);
