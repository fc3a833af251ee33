-- The phases of runs, and where runs come from. In rows from before, a run that had not
-- ended has a phase that may be wrong until the run changes, and no run has a parent.
-- A release that does not know these columns leaves phases behind the runs, so the step
-- keeps it out. The last columns of an index are there for filters.
ALTER TABLE runs
	ADD COLUMN phase text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN parent text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN parent_step text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN forked_from text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN forked_at bigint NOT NULL DEFAULT 0,
	ADD COLUMN retried_from text COLLATE "C" NOT NULL DEFAULT '';
UPDATE runs SET phase = CASE WHEN status <> 'running' THEN status WHEN blocked_code IS NOT NULL THEN 'blocked'
	WHEN paused THEN 'paused' WHEN waiting IS NOT NULL THEN 'waiting' ELSE 'running' END;
CREATE INDEX runs_all ON runs (tenant, started DESC, run DESC, parent, workflow);
CREATE INDEX runs_phase ON runs (tenant, phase, started DESC, run DESC, parent, workflow);
CREATE INDEX runs_parent ON runs (tenant, parent, started DESC, run DESC) WHERE parent <> '';
CREATE INDEX runs_forked ON runs (tenant, forked_from, started DESC, run DESC) WHERE forked_from <> '';
UPDATE store SET needs = 3;
