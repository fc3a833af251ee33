-- The database's id, and its position: the number of writing transactions so far.

ALTER TABLE store ADD COLUMN id BLOB;
ALTER TABLE store ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
UPDATE store SET id = randomblob(16);
