-- The spending of tenants by month (year*100 + month), and the bytes of each session's journal
-- and state. Spending before this schema is taken from the runs that still exist. A state counts
-- from the session's next write on. SQLite uses the index runs_turn for queries with the same
-- condition: see mayWaitForTurn.

CREATE TABLE spent (
	tenant    TEXT NOT NULL,
	month     INTEGER NOT NULL,
	runs      INTEGER NOT NULL,
	fuel      INTEGER NOT NULL,
	log_bytes INTEGER NOT NULL,
	PRIMARY KEY (tenant, month)
) STRICT, WITHOUT ROWID;
INSERT INTO spent (tenant, month, runs, fuel, log_bytes)
	SELECT tenant, CAST(strftime('%Y%m', updated / 1000000000, 'unixepoch') AS INTEGER), count(*), sum(fuel), 0 FROM runs GROUP BY 1, 2;
ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET bytes = coalesce((SELECT sum(length(data)) FROM journal WHERE sid = sessions.id), 0);
CREATE INDEX runs_turn ON runs (tenant) WHERE status = 'running' AND steps = 0 AND instr(waiting, x'076773657373696f6e') > 0;
