-- The index of words, a table of notes of what the index has not read yet, and the trigger that
-- removes deleted runs from the index.

CREATE TABLE unread (
	n    INTEGER PRIMARY KEY,
	runs TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE run_words USING fts5 (words, of UNINDEXED, detail = none, columnsize = 0, tokenize = 'ascii');
INSERT INTO run_words (run_words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER runs_words AFTER DELETE ON runs BEGIN
	DELETE FROM run_words WHERE rowid = ((old.started & ~1048575) | (old.id & 1048575));
END;
INSERT INTO unread (runs) SELECT json_group_array(id) FROM runs WHERE status <> 'running' GROUP BY id >> 8;
