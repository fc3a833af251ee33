-- What a run waits for, a CBOR list; NULL: nothing.

ALTER TABLE runs ADD COLUMN waiting BLOB;
