-- How an agent is meant to run. wanted: 0 stopped, 1 running. Every restart is a new generation:
-- what runs under an older one is replaced. `failure` is why the host gave up on it, `notice` the
-- last message that told it of a start.
ALTER TABLE agents ADD COLUMN wanted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN engine TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN failure TEXT;
ALTER TABLE agents ADD COLUMN notice INTEGER;
