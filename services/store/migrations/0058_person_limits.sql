-- Limits of people: messages a minute, turns and dollars a day.
CREATE TABLE parley.person_limits (
  channel text NOT NULL,
  account text NOT NULL,
  contact_id text NOT NULL,
  -- NULL: the limit of the person's role in the settings. 0: no limit.
  messages_per_minute integer CHECK (messages_per_minute >= 0),
  turns_per_day integer CHECK (turns_per_day >= 0),
  usd_per_day double precision CHECK (usd_per_day >= 0),
  changed_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT person_limits_pkey PRIMARY KEY (channel, account, contact_id)
);
-- Accepted messages to which a limit applied, for two days. The message and its turn may be deleted earlier, so nothing is referenced.
CREATE TABLE parley.person_messages (
  inbox_id uuid NOT NULL PRIMARY KEY,
  channel text NOT NULL,
  account text NOT NULL,
  contact_id text NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX person_messages_person ON parley.person_messages (channel, account, contact_id, at);
CREATE INDEX person_messages_age ON parley.person_messages (at);
-- Refused messages of a day, and until when their sender is not told again.
CREATE TABLE parley.person_refusals (
  channel text NOT NULL,
  account text NOT NULL,
  contact_id text NOT NULL,
  limit_name text NOT NULL CHECK (limit_name IN ('messages_per_minute', 'turns_per_day', 'usd_per_day')),
  -- UTC.
  day date NOT NULL,
  refused integer NOT NULL,
  told_until timestamptz NOT NULL,
  CONSTRAINT person_refusals_pkey PRIMARY KEY (channel, account, contact_id, limit_name)
);
CREATE INDEX person_refusals_day ON parley.person_refusals (day);
