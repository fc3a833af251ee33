-- Snapshots in the journal. A row has the position of its newest snapshot, or NULL. A session
-- has the row (by first) of its newest snapshot, or 0.

ALTER TABLE journal ADD COLUMN snapshot INTEGER;
CREATE INDEX journal_snapshot ON journal (sid, snapshot) WHERE snapshot IS NOT NULL;
ALTER TABLE sessions ADD COLUMN snapshot INTEGER NOT NULL DEFAULT 0;
