-- How far the notes and conversations were taken into MEMORY.md, and each call of a model for it.

CREATE TABLE parley.memory_consolidated_notes (
  path text PRIMARY KEY,
  -- All lines of this version are taken in; 0: none.
  version integer NOT NULL,
  -- Of a longer step: the version that is being gone through, and its last line that is taken in.
  part_version integer,
  part_line integer,
  CHECK ((part_version IS NULL) = (part_line IS NULL))
);

CREATE TABLE parley.memory_consolidated_sessions (
  session_id uuid PRIMARY KEY REFERENCES parley.sessions ON DELETE CASCADE,
  -- The last message that is taken in.
  seq bigint NOT NULL
);

CREATE TABLE parley.memory_consolidations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now(),
  outcome text NOT NULL CHECK (outcome IN ('saved', 'unchanged', 'conflict', 'refused', 'failed', 'cancelled')),
  -- Why nothing came of it; null where something did.
  reason text,
  -- The version of MEMORY.md that it has made.
  version integer,
  model text NOT NULL,
  usage text NOT NULL,
  -- Millionths of a US dollar; null: the price is not known.
  cost_micros bigint
);
CREATE INDEX memory_consolidations_age ON parley.memory_consolidations (created_at);
