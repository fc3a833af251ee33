-- How many runs each workflow has in each phase. Triggers keep the counts, so that every
-- statement that changes runs changes them in its transaction. Updates of a count stay on
-- its page.
CREATE TABLE run_counts (
	tenant   text COLLATE "C",
	workflow text COLLATE "C",
	phase    text COLLATE "C",
	runs     bigint NOT NULL,
	children bigint NOT NULL,
	PRIMARY KEY (tenant, workflow, phase)
) WITH (fillfactor = 20);
INSERT INTO run_counts SELECT tenant, workflow, phase, count(*), count(*) FILTER (WHERE parent <> '') FROM runs GROUP BY tenant, workflow, phase;
CREATE FUNCTION count_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO run_counts AS c SELECT tenant, workflow, phase, count(*), count(*) FILTER (WHERE parent <> '') FROM added GROUP BY tenant, workflow, phase
		ON CONFLICT (tenant, workflow, phase) DO UPDATE SET runs = c.runs + excluded.runs, children = c.children + excluded.children;
	RETURN NULL;
END $$;
CREATE FUNCTION count_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO run_counts AS c SELECT tenant, workflow, phase, sum(n), coalesce(sum(n) FILTER (WHERE parent <> ''), 0)
			FROM (SELECT tenant, workflow, phase, parent, 1 AS n FROM added UNION ALL SELECT tenant, workflow, phase, parent, -1 FROM removed) d
			GROUP BY tenant, workflow, phase HAVING sum(n) <> 0 OR sum(n) FILTER (WHERE parent <> '') <> 0
		ON CONFLICT (tenant, workflow, phase) DO UPDATE SET runs = c.runs + excluded.runs, children = c.children + excluded.children;
	RETURN NULL;
END $$;
CREATE FUNCTION count_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE run_counts c SET runs = c.runs - d.runs, children = c.children - d.children
		FROM (SELECT tenant, workflow, phase, count(*) AS runs, count(*) FILTER (WHERE parent <> '') AS children FROM removed GROUP BY tenant, workflow, phase) d
		WHERE c.tenant = d.tenant AND c.workflow = d.workflow AND c.phase = d.phase;
	DELETE FROM run_counts c USING (SELECT DISTINCT tenant, workflow FROM removed) d
		WHERE c.tenant = d.tenant AND c.workflow = d.workflow AND c.runs = 0;
	RETURN NULL;
END $$;
CREATE TRIGGER runs_counted AFTER INSERT ON runs REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_added();
CREATE TRIGGER runs_recounted AFTER UPDATE ON runs REFERENCING NEW TABLE AS added OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_changed();
CREATE TRIGGER runs_uncounted AFTER DELETE ON runs REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removed();
