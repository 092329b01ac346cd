-- Questions to people that a tool call waits for; what a person says next in that session answers the oldest one.
CREATE TABLE parley.questions (
  turn_id uuid NOT NULL REFERENCES parley.turns,
  n integer NOT NULL,
  session_id uuid NOT NULL REFERENCES parley.sessions,
  trust text NOT NULL,
  -- JSON: what is asked, and the answers that are offered.
  body text NOT NULL,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'over')),
  asked_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (turn_id, n)
);
CREATE INDEX questions_open ON parley.questions (session_id, asked_at) WHERE state = 'open';
