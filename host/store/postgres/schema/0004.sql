-- settings: digests of the settings that all nodes should share, by the name of the flag, as
-- a JSON object; '' is a node of a release that does not say them.
ALTER TABLE nodes ADD COLUMN settings text NOT NULL DEFAULT '';
