-- Rights of tool calls and rewinds. A grant is checked with the key of the epoch that signed it; a claimed step, a background
-- process and a rewind are named by the hash of a secret that only their owner has.

CREATE TABLE parley.leader_keys (
  epoch bigint PRIMARY KEY,
  -- Base64url of 32 random bytes.
  grant_key text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Hashes of all claims: an idempotent step may have several. Who presents one of the secrets may settle the step.
ALTER TABLE parley.steps ADD COLUMN claim_hashes text[];

-- NULL: begun by a tool-runner of an older version, whose end nobody can report; it is lost when its tool-runner is.
ALTER TABLE parley.processes ADD COLUMN key_hash text;

-- The session of the call that uploads; NULL: of no call.
ALTER TABLE parley.blob_uploads ADD COLUMN session_id uuid REFERENCES parley.sessions ON DELETE CASCADE;

CREATE TABLE parley.rewind_permits (
  rewind_id uuid NOT NULL,
  secret_hash text NOT NULL,
  session_id uuid NOT NULL REFERENCES parley.sessions ON DELETE CASCADE,
  -- The turn or rewind before which everything is to be.
  target_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (rewind_id, secret_hash)
);
CREATE INDEX rewind_permits_age ON parley.rewind_permits (created_at);
CREATE INDEX rewind_permits_session ON parley.rewind_permits (session_id);
CREATE INDEX blob_uploads_session ON parley.blob_uploads (session_id);
