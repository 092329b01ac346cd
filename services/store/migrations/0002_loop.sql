-- The loop in full: who said what, input that joins a running turn, turns that wait, agents that start agents, approvals,
-- what the model is shown of a long session, what it cost.

CREATE TABLE parley.prefixes (
  hash text PRIMARY KEY,
  -- JSON: the system prompt and the tools, exactly as a model is sent them.
  content text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE parley.sessions
  ADD COLUMN title text,
  ADD COLUMN status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
  ADD COLUMN parent_id uuid REFERENCES parley.sessions,
  ADD COLUMN profile text,
  ADD COLUMN depth smallint NOT NULL DEFAULT 0,
  ADD COLUMN cost_micros bigint NOT NULL DEFAULT 0,
  -- Model calls whose price is not known: they are not in the cost.
  ADD COLUMN unpriced_calls integer NOT NULL DEFAULT 0,
  -- JSON: what was changed for this session alone (model, effort, permission mode, rules).
  ADD COLUMN overrides text,
  -- JSON: which part of the log a model is shown; null: all of it.
  ADD COLUMN view text,
  ADD COLUMN view_version integer NOT NULL DEFAULT 0,
  ADD COLUMN prefix_hash text REFERENCES parley.prefixes;
CREATE INDEX sessions_children ON parley.sessions (parent_id) WHERE parent_id IS NOT NULL;

-- A route (made of channel, account and conversation) leads to the session of the same key, unless it was bound to another.
CREATE TABLE parley.bindings (
  route text PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions,
  bound_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bindings_session ON parley.bindings (session_id);

ALTER TABLE parley.turns
  -- Whose word began it; only equal trust joins it.
  ADD COLUMN trust text NOT NULL DEFAULT 'owner',
  -- Waits for somebody else (an approval, a sub-agent) and is not worked on until then, or until `wake_at`.
  ADD COLUMN parked boolean NOT NULL DEFAULT false,
  ADD COLUMN wake_at timestamptz,
  ADD COLUMN parent_turn_id uuid REFERENCES parley.turns,
  ADD COLUMN parent_step integer,
  ADD COLUMN parent_mode text CHECK (parent_mode IN ('wait', 'background')),
  -- The user's turn at the top; null: this one.
  ADD COLUMN root_turn_id uuid REFERENCES parley.turns,
  ADD COLUMN cost_micros bigint NOT NULL DEFAULT 0,
  ADD COLUMN unpriced_calls integer NOT NULL DEFAULT 0;
CREATE INDEX turns_root ON parley.turns (root_turn_id) WHERE root_turn_id IS NOT NULL;
CREATE INDEX turns_parent ON parley.turns (parent_turn_id) WHERE parent_turn_id IS NOT NULL;

ALTER TABLE parley.inbox
  ADD COLUMN mode text NOT NULL DEFAULT 'queue' CHECK (mode IN ('steer', 'queue', 'coalesce', 'interrupt', 'reject')),
  ADD COLUMN trust text NOT NULL DEFAULT 'owner',
  -- Not looked at before: the window in which more of the same sender is waited for.
  ADD COLUMN ready_at timestamptz NOT NULL DEFAULT now(),
  -- The call that this input is the task of.
  ADD COLUMN parent_turn_id uuid REFERENCES parley.turns,
  ADD COLUMN parent_step integer,
  ADD COLUMN parent_mode text CHECK (parent_mode IN ('wait', 'background')),
  -- W3C trace context of what brought it.
  ADD COLUMN trace text;
CREATE INDEX inbox_of_turn ON parley.inbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX inbox_owner ON parley.inbox (received_at) WHERE trust = 'owner' AND reply_to IS NOT NULL;
CREATE INDEX inbox_task ON parley.inbox (parent_turn_id) WHERE parent_turn_id IS NOT NULL;

-- JSON: who said it, where, on whose behalf; null: the loop itself.
ALTER TABLE parley.messages ADD COLUMN sender text;

-- JSON: what a durable event says beyond its turn.
ALTER TABLE parley.events ADD COLUMN body text;

ALTER TABLE parley.outbox ADD COLUMN trace text;

ALTER TABLE parley.steps ADD COLUMN cost_micros bigint;
CREATE INDEX steps_cost ON parley.steps (created_at) WHERE kind = 'model';

CREATE TABLE parley.approvals (
  id text PRIMARY KEY,
  session_id uuid NOT NULL REFERENCES parley.sessions,
  turn_id uuid NOT NULL REFERENCES parley.turns,
  n integer NOT NULL,
  tool text NOT NULL,
  -- SHA-256 of the exact call; a yes to it is a yes to nothing else.
  call_hash text NOT NULL,
  summary text NOT NULL,
  reason text NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'allowed', 'denied', 'expired', 'used')),
  always boolean NOT NULL DEFAULT false,
  requested_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  decided_by text,
  decided_at timestamptz,
  UNIQUE (turn_id, n, call_hash)
);
CREATE INDEX approvals_pending ON parley.approvals (expires_at) WHERE state = 'pending';
