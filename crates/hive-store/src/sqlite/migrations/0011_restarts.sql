-- How often the host started an agent again by itself since somebody asked for it, and when last.
ALTER TABLE agents ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN restarted_at INTEGER;
