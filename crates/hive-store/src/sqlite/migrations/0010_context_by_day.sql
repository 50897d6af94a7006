-- How full an agent's context was at most on a day.
ALTER TABLE turn_totals ADD COLUMN context_tokens INTEGER NOT NULL DEFAULT 0;
