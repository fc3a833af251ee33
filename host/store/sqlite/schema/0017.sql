-- The phases of runs, and where runs come from. In rows from before, a run that had not ended
-- has a phase that may be wrong until the run changes, and no run has a parent. The last
-- columns of an index are there for filters: a walk reads only the rows that it gives.

ALTER TABLE runs ADD COLUMN phase TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN parent_step TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN forked_from TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN forked_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN retried_from TEXT NOT NULL DEFAULT '';
UPDATE runs SET phase = CASE WHEN status <> 'running' THEN status WHEN blocked_code IS NOT NULL THEN 'blocked'
	WHEN paused THEN 'paused' WHEN waiting IS NOT NULL THEN 'waiting' ELSE 'running' END;
CREATE INDEX runs_all ON runs (tenant, started DESC, run DESC, parent, workflow);
CREATE INDEX runs_phase ON runs (tenant, phase, started DESC, run DESC, parent, workflow);
CREATE INDEX runs_parent ON runs (tenant, parent, started DESC, run DESC) WHERE parent <> '';
CREATE INDEX runs_forked ON runs (tenant, forked_from, started DESC, run DESC) WHERE forked_from <> '';
