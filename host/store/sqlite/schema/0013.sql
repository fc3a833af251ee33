-- Resources that tenants have defined, and the use of resources.

CREATE TABLE resources (
	tenant     TEXT NOT NULL,
	name       TEXT NOT NULL,
	definition BLOB NOT NULL,
	key_id     TEXT NOT NULL,
	sealed     BLOB NOT NULL,
	created    INTEGER NOT NULL,
	updated    INTEGER NOT NULL,
	PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE resource_use (
	tenant        TEXT NOT NULL,
	resource      TEXT NOT NULL,
	workflow      TEXT NOT NULL,
	calls         INTEGER NOT NULL,
	failed        INTEGER NOT NULL,
	sent          INTEGER NOT NULL,
	received      INTEGER NOT NULL,
	input_tokens  INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	PRIMARY KEY (tenant, resource, workflow)
) STRICT, WITHOUT ROWID;
