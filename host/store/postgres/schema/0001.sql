-- Names are text in the order of their bytes. The store escapes the bytes that PostgreSQL's
-- text cannot have (see names.go). Messages and other free text are bytea.
-- Rows that grow with every run have no foreign keys: each would cost a look-up for each
-- row. The statements that delete name all tables.
-- Ids of sessions, handlers, runs and spaces are made by the node and grow with time.

CREATE TABLE meta (
	key   text COLLATE "C" PRIMARY KEY,
	value bytea NOT NULL
);

-- A node is one process that has opened the store to write. Its epoch is its number.
CREATE TABLE nodes (
	epoch   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name    text NOT NULL,
	slot    smallint NOT NULL,
	state   text NOT NULL CHECK (state IN ('joining', 'live', 'leaving', 'left', 'fenced')),
	version text NOT NULL,
	schema  int NOT NULL,
	beats   bigint NOT NULL DEFAULT 0,
	beat    timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX nodes_slot ON nodes (slot) WHERE state IN ('joining', 'live', 'leaving');

-- The fence: each commit of a node updates its row. mark is random and belongs to the node.
-- batch is the number of the node's newest commit, at the time of its newest entry.
CREATE TABLE pulse (
	epoch bigint PRIMARY KEY,
	mark  bigint NOT NULL,
	open  boolean NOT NULL,
	batch bigint NOT NULL DEFAULT 0,
	at    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Who owns the sessions of a partition: NULL is nobody.
CREATE TABLE partitions (
	part    smallint PRIMARY KEY,
	epoch   bigint,
	since   bigint NOT NULL DEFAULT 0,
	crashed bigint NOT NULL DEFAULT 0,
	down    bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
INSERT INTO partitions (part) SELECT generate_series(0, 127);

-- One row per session. wake_at: 0 is now, NULL is never. last: 0 is being deleted.
-- private: a handler with the session's own name has run in it.
-- snapshot: the row of the journal (by first) with the newest snapshot, or 0.
-- unlisted: up to this position the versions that entries need are not listed.
CREATE TABLE sessions (
	id       bigint PRIMARY KEY,
	part     smallint NOT NULL,
	tenant   text COLLATE "C" NOT NULL,
	session  text COLLATE "C" NOT NULL,
	last     bigint NOT NULL,
	wake_at  bigint,
	private  boolean NOT NULL,
	snapshot bigint NOT NULL,
	bytes    bigint NOT NULL,
	state    bigint NOT NULL,
	created  bigint NOT NULL,
	updated  bigint NOT NULL,
	unlisted bigint NOT NULL DEFAULT 0,
	UNIQUE (tenant, session)
);
CREATE INDEX sessions_wake ON sessions (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX sessions_tenant ON sessions (tenant, id);
CREATE INDEX sessions_unlisted ON sessions (unlisted) WHERE unlisted > 0;

-- One row per batch and session: the entries from position first on, as CBOR with a
-- checksum.
CREATE TABLE journal (
	sid      bigint,
	first    bigint,
	snapshot bigint,
	data     bytea NOT NULL,
	PRIMARY KEY (sid, first)
);
ALTER TABLE journal ALTER data SET STORAGE EXTERNAL;
CREATE INDEX journal_snapshot ON journal (sid, snapshot) WHERE snapshot IS NOT NULL;

-- first_seq: of the latest run's first stream event.
CREATE TABLE handlers (
	id        bigint PRIMARY KEY,
	tenant    text COLLATE "C" NOT NULL,
	handler   text COLLATE "C" NOT NULL,
	sid       bigint,
	first_seq bigint NOT NULL,
	made      bigint NOT NULL,
	UNIQUE (tenant, handler)
);

CREATE TABLE runs (
	id              bigint PRIMARY KEY,
	hid             bigint NOT NULL,
	sid             bigint NOT NULL,
	latest          boolean NOT NULL,
	paused          boolean NOT NULL,
	started         bigint NOT NULL,
	updated         bigint NOT NULL,
	completed       bigint NOT NULL,
	steps           bigint NOT NULL,
	fuel            bigint NOT NULL,
	tenant          text COLLATE "C" NOT NULL,
	handler         text COLLATE "C" NOT NULL,
	run             text COLLATE "C" NOT NULL,
	session         text COLLATE "C" NOT NULL,
	workflow        text COLLATE "C" NOT NULL,
	version         text COLLATE "C" NOT NULL,
	status          text COLLATE "C" NOT NULL,
	error_code      text COLLATE "C" NOT NULL,
	blocked_code    text COLLATE "C",
	blocked_message bytea,
	error           bytea NOT NULL,
	waiting         bytea,
	result          bytea,
	UNIQUE (tenant, run)
);
CREATE INDEX runs_handler ON runs (hid);
CREATE INDEX runs_started ON runs (tenant, started DESC, handler DESC) WHERE latest;
CREATE INDEX runs_status ON runs (tenant, status, started DESC, handler DESC) WHERE latest;
CREATE INDEX runs_workflow ON runs (tenant, workflow, started DESC, handler DESC) WHERE latest;
CREATE INDEX runs_session ON runs (sid, started DESC, handler DESC) WHERE latest;
CREATE INDEX runs_blocked ON runs (tenant, started DESC, handler DESC) WHERE latest AND blocked_code IS NOT NULL;
CREATE INDEX runs_running ON runs (tenant, workflow, version) WHERE status = 'running';
CREATE INDEX runs_ended ON runs (tenant, completed, run) WHERE completed > 0;
-- Runs that wait for their session's turn, and few others.
CREATE INDEX runs_turn ON runs (tenant) WHERE status = 'running' AND steps = 0 AND position('\x076773657373696f6e'::bytea IN waiting) > 0;

-- Stream events in rows of consecutive ones, keyed by the last one.
CREATE TABLE stream (
	hid       bigint,
	last_seq  bigint,
	first_seq bigint NOT NULL,
	run       text COLLATE "C" NOT NULL,
	events    bytea NOT NULL,
	PRIMARY KEY (hid, last_seq)
);
ALTER TABLE stream ALTER events SET STORAGE EXTERNAL;

-- The words of ended runs. The index lags behind the commits: unread notes the runs whose
-- words are not in it yet.
CREATE TABLE unread (
	n    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	runs bigint[] NOT NULL
);
CREATE TABLE run_words (
	run   bigint PRIMARY KEY,
	words tsvector NOT NULL
);
CREATE INDEX run_words_words ON run_words USING gin (words);
CREATE FUNCTION drop_words() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	DELETE FROM run_words w USING gone WHERE w.run = gone.id;
	RETURN NULL;
END $$;
CREATE TRIGGER runs_words AFTER DELETE ON runs REFERENCING OLD TABLE AS gone
	FOR EACH STATEMENT EXECUTE FUNCTION drop_words();

CREATE TABLE repeats (
	tenant text COLLATE "C",
	route  text COLLATE "C",
	key    text COLLATE "C",
	hash   text COLLATE "C" NOT NULL,
	run    text COLLATE "C" NOT NULL,
	made   bigint NOT NULL,
	PRIMARY KEY (tenant, route, key)
);
CREATE INDEX repeats_made ON repeats (made);

-- month is year*100 + month. epoch 0 holds the sums of ended epochs.
CREATE TABLE spent (
	tenant    text COLLATE "C",
	month     int,
	epoch     bigint,
	runs      bigint NOT NULL,
	fuel      bigint NOT NULL,
	log_bytes bigint NOT NULL,
	PRIMARY KEY (tenant, month, epoch)
);

CREATE TABLE kv_spaces (
	id       bigint PRIMARY KEY,
	tenant   text COLLATE "C" NOT NULL,
	resource text COLLATE "C" NOT NULL,
	made     bigint NOT NULL,
	last     bigint NOT NULL,
	keys     bigint NOT NULL,
	bytes    bigint NOT NULL,
	epoch    bigint,
	UNIQUE (tenant, resource, made)
);
CREATE TABLE kv (
	space   bigint,
	key     bytea,
	version bigint NOT NULL,
	value   bytea NOT NULL,
	PRIMARY KEY (space, key)
);

-- Modules by the SHA-256 of their original bytes. The versions that journals need have
-- small numbers.
CREATE TABLE modules (
	digest     text COLLATE "C" PRIMARY KEY,
	rewritten  text COLLATE "C" NOT NULL,
	image_hash text COLLATE "C" NOT NULL,
	manifest   bytea,
	imports    bytea NOT NULL
);
CREATE TABLE module_bytes (
	digest text COLLATE "C" PRIMARY KEY REFERENCES modules (digest) ON DELETE CASCADE,
	bytes  bytea NOT NULL
);
ALTER TABLE module_bytes ALTER bytes SET STORAGE EXTERNAL;
CREATE TABLE plugins (
	tenant   text COLLATE "C",
	name     text COLLATE "C",
	version  int,
	workflow text COLLATE "C" NOT NULL,
	digest   text COLLATE "C" NOT NULL REFERENCES modules (digest),
	size     bigint NOT NULL,
	created  bigint NOT NULL,
	PRIMARY KEY (tenant, name, version)
);
CREATE INDEX plugins_digest ON plugins (digest);
CREATE TABLE compositions (
	tenant  text COLLATE "C",
	name    text COLLATE "C",
	version int,
	digest  text COLLATE "C" NOT NULL,
	created bigint NOT NULL,
	record  bytea NOT NULL,
	PRIMARY KEY (tenant, name, version)
);
CREATE INDEX compositions_digest ON compositions (digest);
CREATE TABLE composition_modules (
	tenant  text COLLATE "C",
	name    text COLLATE "C",
	version int,
	place   int,
	module  text COLLATE "C" NOT NULL REFERENCES modules (digest),
	PRIMARY KEY (tenant, name, version, place),
	FOREIGN KEY (tenant, name, version) REFERENCES compositions (tenant, name, version) ON DELETE CASCADE
);
CREATE INDEX composition_modules_module ON composition_modules (module);
CREATE TABLE versions (
	id     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	digest text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE session_versions (
	sid     bigint,
	version bigint,
	last    bigint NOT NULL,
	PRIMARY KEY (sid, version)
);
CREATE INDEX session_versions_version ON session_versions (version);
-- Versions that no name refers to any more. They stay while a journal needs them.
CREATE TABLE released (
	digest text COLLATE "C" PRIMARY KEY
);
CREATE TABLE released_compositions (
	digest  text COLLATE "C" PRIMARY KEY,
	tenant  text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	version int NOT NULL,
	created bigint NOT NULL,
	record  bytea NOT NULL
);
CREATE TABLE released_modules (
	digest text COLLATE "C" REFERENCES released_compositions (digest) ON DELETE CASCADE,
	place  int,
	module text COLLATE "C" NOT NULL REFERENCES modules (digest),
	PRIMARY KEY (digest, place)
);
CREATE INDEX released_modules_module ON released_modules (module);

CREATE TABLE tenants (
	name     text COLLATE "C" PRIMARY KEY,
	created  bigint NOT NULL,
	deleting boolean NOT NULL
);
CREATE TABLE keys (
	id              text COLLATE "C" PRIMARY KEY,
	tenant          text COLLATE "C" NOT NULL,
	role            text COLLATE "C" NOT NULL,
	name            text COLLATE "C" NOT NULL,
	prefix          text COLLATE "C" NOT NULL,
	hash            bytea NOT NULL,
	previous        bytea NOT NULL,
	previous_prefix text COLLATE "C" NOT NULL,
	previous_until  bigint NOT NULL,
	created         bigint NOT NULL,
	expires         bigint NOT NULL,
	last_used       bigint NOT NULL,
	revoked         bigint NOT NULL
);
CREATE INDEX keys_tenant ON keys (tenant);
CREATE TABLE access_audit (
	id      bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	time    bigint NOT NULL,
	who     text COLLATE "C" NOT NULL,
	tenant  text COLLATE "C" NOT NULL,
	act     text COLLATE "C" NOT NULL,
	target  text COLLATE "C" NOT NULL,
	detail  bytea NOT NULL,
	outcome text COLLATE "C" NOT NULL
);
CREATE INDEX access_audit_tenant ON access_audit (tenant, id);

CREATE TABLE resources (
	tenant     text COLLATE "C",
	name       text COLLATE "C",
	definition bytea NOT NULL,
	key_id     text COLLATE "C" NOT NULL,
	sealed     bytea NOT NULL,
	created    bigint NOT NULL,
	updated    bigint NOT NULL,
	PRIMARY KEY (tenant, name)
);
CREATE TABLE resource_use (
	tenant        text COLLATE "C",
	resource      text COLLATE "C",
	workflow      text COLLATE "C",
	calls         bigint NOT NULL,
	failed        bigint NOT NULL,
	sent          bigint NOT NULL,
	received      bigint NOT NULL,
	input_tokens  bigint NOT NULL,
	output_tokens bigint NOT NULL,
	PRIMARY KEY (tenant, resource, workflow)
);

-- expect ends a transaction whose statement did not find what it must find.
CREATE FUNCTION expect(ok boolean, state text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF ok IS NOT TRUE THEN
		RAISE EXCEPTION 'refused' USING ERRCODE = state;
	END IF;
END $$;
