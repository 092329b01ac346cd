-- File checkpoints: how files stood before a user's turn, or a rewind, changed them. Their content is the tool-runner's, under
-- its hash.

CREATE TABLE parley.checkpoints (
  -- The id of the turn, or of the rewind.
  id uuid PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions ON DELETE CASCADE,
  kind text NOT NULL CHECK (kind IN ('turn', 'rewind')),
  -- When the turn or the rewind began: their order in the session.
  at timestamptz NOT NULL
);
CREATE INDEX checkpoints_session ON parley.checkpoints (session_id, at);
CREATE INDEX checkpoints_age ON parley.checkpoints (at);

CREATE TABLE parley.checkpoint_files (
  checkpoint_id uuid NOT NULL REFERENCES parley.checkpoints ON DELETE CASCADE,
  path text COLLATE "C" NOT NULL,
  -- The order in which paths were kept, over all checkpoints.
  n bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL CHECK (kind IN ('file', 'link', 'directory', 'absent', 'untracked')),
  sha256 text,
  size bigint,
  mode integer,
  reason text,
  tracked_at timestamptz NOT NULL DEFAULT now(),
  -- The first to keep a path is believed: what comes later may have seen the change already.
  PRIMARY KEY (checkpoint_id, path),
  CHECK ((kind IN ('file', 'link')) = (sha256 IS NOT NULL))
);
CREATE INDEX checkpoint_files_content ON parley.checkpoint_files (sha256) WHERE sha256 IS NOT NULL;

-- Documents that a rewind put back, by the version before; what a turn wrote is known from parley.documents.
CREATE TABLE parley.checkpoint_documents (
  checkpoint_id uuid NOT NULL REFERENCES parley.checkpoints ON DELETE CASCADE,
  path text NOT NULL,
  -- 0: there was none.
  version integer NOT NULL,
  PRIMARY KEY (checkpoint_id, path)
);

CREATE TABLE parley.rewinds (
  id uuid PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions ON DELETE CASCADE,
  -- The turn or rewind before which everything shall be.
  target_id uuid NOT NULL,
  state text NOT NULL CHECK (state IN ('running', 'done', 'failed')),
  runner text NOT NULL,
  fence bigint NOT NULL DEFAULT 1,
  expires_at timestamptz NOT NULL,
  -- JSON: what the one who asked is answered.
  report text,
  began_at timestamptz NOT NULL DEFAULT now()
);
-- There is one workspace.
CREATE UNIQUE INDEX rewinds_one_running ON parley.rewinds ((true)) WHERE state = 'running';
