-- The creation time of a session and the time of its last entry, as far as these are known for
-- older sessions. A session with last = 0 is being deleted.

ALTER TABLE sessions ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN updated INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET
	created = coalesce((SELECT min(started) FROM runs WHERE sid = sessions.id AND latest = 1), 0),
	updated = coalesce((SELECT max(updated) FROM runs WHERE sid = sessions.id AND latest = 1), 0);
CREATE INDEX sessions_tenant ON sessions (tenant);
