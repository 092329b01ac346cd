-- Content that a model or a person produced is text holding JSON: byte for byte what was sent, NUL and lone surrogates
-- (escaped) included, which jsonb would refuse or rewrite.

CREATE TABLE parley.sessions (
  id uuid PRIMARY KEY,
  key text NOT NULL UNIQUE,
  -- One counter for messages and durable events: the session's log.
  seq bigint NOT NULL DEFAULT 0,
  inbox_seq bigint NOT NULL DEFAULT 0,
  message_count integer NOT NULL DEFAULT 0,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sessions_recent ON parley.sessions (updated_at DESC);

CREATE TABLE parley.turns (
  id uuid PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions,
  inbox_id uuid NOT NULL,
  state text NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled', 'dead')),
  epoch bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 1,
  reply_to text,
  next_step integer NOT NULL DEFAULT 1,
  model_steps integer NOT NULL DEFAULT 0,
  cancel_requested boolean NOT NULL DEFAULT false,
  exit_reason text,
  answer text,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  started_at timestamptz NOT NULL DEFAULT now(),
  -- By the leader that works on it, or worked on it last.
  claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamptz
);
-- One running turn a session, whatever the services believe.
CREATE UNIQUE INDEX turns_one_running ON parley.turns (session_id) WHERE state = 'running';

CREATE TABLE parley.inbox (
  id uuid PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions,
  seq bigint NOT NULL,
  channel text NOT NULL,
  account text NOT NULL,
  external_id text NOT NULL,
  priority smallint NOT NULL,
  parts text NOT NULL,
  reply_to text,
  -- Who said it and where: contact, role, conversation, origin.
  sender text NOT NULL,
  state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'claimed', 'done', 'dead', 'cancelled')),
  turn_id uuid,
  received_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (channel, account, external_id),
  UNIQUE (session_id, seq)
);
CREATE INDEX inbox_queued ON parley.inbox (session_id, priority, seq) WHERE state = 'queued';

CREATE TABLE parley.messages (
  session_id uuid NOT NULL REFERENCES parley.sessions,
  seq bigint NOT NULL,
  turn_id uuid NOT NULL REFERENCES parley.turns,
  role text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  parts text NOT NULL,
  model text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (session_id, seq)
);

CREATE TABLE parley.steps (
  turn_id uuid NOT NULL REFERENCES parley.turns,
  n integer NOT NULL,
  kind text NOT NULL CHECK (kind IN ('model', 'tool')),
  state text NOT NULL CHECK (state IN ('intended', 'running', 'done', 'failed', 'cancelled', 'unknown')),
  epoch bigint NOT NULL,
  -- Model calls.
  model text,
  stop_reason text,
  usage text,
  -- Tool calls.
  call_id text,
  tool text,
  class text CHECK (class IN ('pure', 'idempotent', 'once')),
  input text,
  result text,
  runner text,
  -- Claims granted: never above one for class `once`.
  starts integer NOT NULL DEFAULT 0,
  -- The message that carries the result.
  message_seq bigint,
  created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  finished_at timestamptz,
  PRIMARY KEY (turn_id, n),
  CHECK (kind = 'model' OR (call_id IS NOT NULL AND tool IS NOT NULL AND class IS NOT NULL AND input IS NOT NULL)),
  CHECK (kind = 'model' OR state IN ('intended', 'running') OR result IS NOT NULL)
);

CREATE TABLE parley.events (
  session_id uuid NOT NULL REFERENCES parley.sessions,
  seq bigint NOT NULL,
  type text NOT NULL,
  turn_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (session_id, seq)
);
CREATE INDEX events_age ON parley.events (created_at);

CREATE TABLE parley.outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  turn_id uuid REFERENCES parley.turns,
  -- Rows of no turn are unique by the operation that made them.
  op_id uuid,
  ordinal integer NOT NULL,
  channel text NOT NULL,
  account text NOT NULL,
  conversation text NOT NULL,
  reply_to_id text,
  body text NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'dropped')),
  attempts integer NOT NULL DEFAULT 0,
  not_before timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  claim_replica text,
  claim_incarnation text,
  claim_until timestamptz,
  provider_message_id text,
  error text,
  created_at timestamptz NOT NULL DEFAULT now(),
  settled_at timestamptz,
  UNIQUE (turn_id, ordinal),
  UNIQUE (op_id),
  CHECK ((turn_id IS NULL) <> (op_id IS NULL))
);
CREATE INDEX outbox_open ON parley.outbox (channel, account, conversation, id) WHERE state IN ('pending', 'sending');

-- What every operation begins with: the shared lock, then the epoch, each in a statement with a snapshot of its own (a VOLATILE
-- function under READ COMMITTED gives each of its statements one), then, where one is given, the lock on a session, then whether
-- the operation is known already.
CREATE FUNCTION parley.enter(
  operation uuid, writer_epoch bigint, wanted_session uuid,
  OUT current_epoch bigint, OUT known text, OUT session_key text, OUT session_seq bigint
)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF writer_epoch IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock_shared(7305510218);
    SELECT epoch INTO current_epoch FROM parley.leadership WHERE name = 'agent-core';
  END IF;
  IF wanted_session IS NOT NULL AND current_epoch IS NOT DISTINCT FROM writer_epoch THEN
    SELECT key, seq INTO session_key, session_seq FROM parley.sessions WHERE id = wanted_session FOR UPDATE;
  END IF;
  -- After every wait: an earlier try of the same operation may have committed meanwhile.
  SELECT result INTO known FROM parley.ops WHERE op_id = operation;
END $$;

CREATE TABLE parley.leadership (
  name text PRIMARY KEY,
  epoch bigint NOT NULL,
  holder text,
  acquired_at timestamptz
);
INSERT INTO parley.leadership (name, epoch) VALUES ('agent-core', 0);

-- Every takeover, with the moment at which no write of an earlier epoch could commit any more.
CREATE TABLE parley.leadership_log (
  epoch bigint PRIMARY KEY,
  holder text NOT NULL,
  acquired_at timestamptz NOT NULL
);

CREATE TABLE parley.ops (
  op_id uuid PRIMARY KEY,
  result text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ops_age ON parley.ops (created_at);

CREATE TABLE parley.leases (
  name text PRIMARY KEY,
  owner text,
  fence bigint NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL,
  cursor text
);

CREATE TABLE parley.contacts (
  channel text NOT NULL,
  account text NOT NULL,
  contact_id text NOT NULL,
  name text,
  role text NOT NULL CHECK (role IN ('owner', 'user', 'guest', 'blocked')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account, contact_id)
);

CREATE TABLE parley.pairings (
  channel text NOT NULL,
  account text NOT NULL,
  contact_id text NOT NULL,
  name text,
  code_sha256 text NOT NULL UNIQUE,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (channel, account, contact_id)
);

-- The service's role, where it is another one than the owner: data, no DDL.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'parley_store') THEN
    GRANT USAGE ON SCHEMA parley TO parley_store;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA parley TO parley_store;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA parley TO parley_store;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA parley TO parley_store;
    ALTER DEFAULT PRIVILEGES IN SCHEMA parley GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO parley_store;
    ALTER DEFAULT PRIVILEGES IN SCHEMA parley GRANT USAGE ON SEQUENCES TO parley_store;
    REVOKE INSERT, UPDATE, DELETE ON parley.schema_migrations FROM parley_store;
  END IF;
END $$;
