-- parent: the place in the tree of an agent that is asked for.
-- carried_out_at: when what was approved had been done; until then a start takes it up again.
ALTER TABLE approvals ADD COLUMN parent TEXT;
ALTER TABLE approvals ADD COLUMN carried_out_at INTEGER;
CREATE INDEX approvals_expiry ON approvals (expires_at) WHERE state = 0;
CREATE INDEX approvals_due ON approvals (id) WHERE state = 1 AND carried_out_at IS NULL;
