-- Listening: which MCP server hears for which conversation, how far what it heard has been kept, and answers that wait to be spoken.

CREATE TABLE parley.voice_sessions (
  id uuid PRIMARY KEY,
  -- Of the order: given again it is the same session.
  op_id uuid NOT NULL UNIQUE,
  route text NOT NULL,
  source text NOT NULL,
  -- JSON: whose word is heard, where answers go.
  sender text NOT NULL,
  reply_to text,
  state text NOT NULL CHECK (state IN ('starting', 'listening', 'stopping', 'stopped', 'failed')),
  -- The epoch that has tried to begin; null: nobody has.
  claimed_epoch bigint,
  server text,
  stt_session_id text,
  -- Null: any tool-runner reaches the server.
  runner text,
  since_seq bigint NOT NULL DEFAULT 0,
  utterances integer NOT NULL DEFAULT 0,
  problem text,
  started_at timestamptz NOT NULL DEFAULT now(),
  changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX voice_sessions_open ON parley.voice_sessions (route) WHERE state IN ('starting', 'listening', 'stopping');
CREATE INDEX voice_sessions_route ON parley.voice_sessions (route, started_at DESC);

-- What was heard, the newest of it, for people who look.
CREATE TABLE parley.voice_events (
  voice_id uuid NOT NULL REFERENCES parley.voice_sessions ON DELETE CASCADE,
  seq bigint NOT NULL,
  type text NOT NULL,
  -- JSON.
  text text NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (voice_id, seq)
);

-- Answers of sessions that want them spoken as well; a row goes when its sound is in the outbox, or given up.
CREATE TABLE parley.spoken_replies (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  turn_id uuid NOT NULL REFERENCES parley.turns ON DELETE CASCADE,
  -- JSON.
  text text NOT NULL,
  address text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  not_before timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX spoken_replies_turn ON parley.spoken_replies (turn_id);
