-- How many runs each workflow has in each phase. Triggers keep the counts, so that every
-- statement that changes runs changes them in its transaction.

CREATE TABLE run_counts (
	tenant   TEXT NOT NULL,
	workflow TEXT NOT NULL,
	phase    TEXT NOT NULL,
	runs     INTEGER NOT NULL,
	children INTEGER NOT NULL,
	PRIMARY KEY (tenant, workflow, phase)
) STRICT, WITHOUT ROWID;
INSERT INTO run_counts SELECT tenant, workflow, phase, count(*), count(*) FILTER (WHERE parent <> '') FROM runs GROUP BY tenant, workflow, phase;
CREATE TRIGGER runs_counted AFTER INSERT ON runs BEGIN
	INSERT INTO run_counts (tenant, workflow, phase, runs, children) VALUES (new.tenant, new.workflow, new.phase, 1, new.parent <> '')
		ON CONFLICT DO UPDATE SET runs = runs + 1, children = children + excluded.children;
END;
CREATE TRIGGER runs_recounted AFTER UPDATE OF phase ON runs WHEN old.phase <> new.phase BEGIN
	INSERT INTO run_counts (tenant, workflow, phase, runs, children) VALUES (new.tenant, new.workflow, new.phase, 1, new.parent <> '')
		ON CONFLICT DO UPDATE SET runs = runs + 1, children = children + excluded.children;
	UPDATE run_counts SET runs = runs - 1, children = children - (old.parent <> '')
		WHERE tenant = old.tenant AND workflow = old.workflow AND phase = old.phase;
END;
CREATE TRIGGER runs_uncounted AFTER DELETE ON runs BEGIN
	UPDATE run_counts SET runs = runs - 1, children = children - (old.parent <> '')
		WHERE tenant = old.tenant AND workflow = old.workflow AND phase = old.phase;
	DELETE FROM run_counts WHERE tenant = old.tenant AND workflow = old.workflow AND runs = 0;
END;
