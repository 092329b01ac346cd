-- Jobs in time. A due time becomes one inbox row, unique by job and due time, in the transaction that finds the next one.

CREATE TABLE parley.schedules (
  id text PRIMARY KEY,
  name text NOT NULL,
  -- In the normal form: at <ISO, UTC>, every <seconds>s, cron <fields>.
  schedule text NOT NULL,
  -- From which `every` counts: when the schedule was set.
  anchor timestamptz NOT NULL,
  time_zone text NOT NULL,
  prompt text NOT NULL,
  target text NOT NULL CHECK (target IN ('main', 'own')),
  deliver_to text,
  overlap text NOT NULL CHECK (overlap IN ('skip', 'queue')),
  missed text NOT NULL CHECK (missed IN ('skip', 'run_once')),
  after_run text NOT NULL CHECK (after_run IN ('disable', 'delete')),
  max_runs integer,
  keep_runs integer NOT NULL,
  enabled boolean NOT NULL,
  runs integer NOT NULL DEFAULT 0,
  -- Null: disabled, or over.
  next_due timestamptz,
  last_due timestamptz,
  -- The input of the run before; says whether it is over.
  last_inbox_id uuid,
  -- JSON: whose word made it.
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX schedules_due ON parley.schedules (next_due, id) WHERE next_due IS NOT NULL;
CREATE INDEX schedules_name ON parley.schedules (name);

CREATE TABLE parley.schedule_runs (
  job_id text NOT NULL REFERENCES parley.schedules ON DELETE CASCADE,
  due timestamptz NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  manual boolean NOT NULL DEFAULT false,
  outcome text NOT NULL CHECK (outcome IN ('fired', 'skipped', 'missed', 'failed')),
  reason text,
  inbox_id uuid,
  PRIMARY KEY (job_id, due)
);
