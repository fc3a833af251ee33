-- The version of a run; "" in older rows.

ALTER TABLE runs ADD COLUMN version TEXT NOT NULL DEFAULT '';
