-- Commands that go on in the background: that they run, and on which tool-runner, so that their end, or their loss, is told once.
CREATE TABLE parley.processes (
  id text PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions ON DELETE CASCADE,
  -- Whose trust and address the announcement has.
  turn_id uuid NOT NULL REFERENCES parley.turns ON DELETE CASCADE,
  -- One life of a tool-runner: <replica>#<incarnation>.
  runner text NOT NULL,
  command text NOT NULL,
  started_at timestamptz NOT NULL,
  notify boolean NOT NULL,
  tainted boolean NOT NULL,
  -- The model has been told how it ended.
  told boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'ended', 'lost')),
  -- The last sign of life of its runner.
  seen_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  -- The announcement.
  inbox_id uuid
);
CREATE INDEX processes_running ON parley.processes (runner) WHERE state = 'running';
CREATE INDEX processes_session ON parley.processes (session_id, started_at);
CREATE INDEX processes_turn ON parley.processes (turn_id);
CREATE INDEX processes_ended ON parley.processes (ended_at) WHERE state <> 'running';
