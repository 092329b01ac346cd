-- A text that is sent as several platform messages: where the next one begins, and how many were sent. `interrupted`: the sender crashed
-- while a message was in flight. `doubtful_parts`: messages that may not have arrived.
ALTER TABLE parley.outbox
  ADD COLUMN position integer NOT NULL DEFAULT 0,
  ADD COLUMN parts integer NOT NULL DEFAULT 0,
  ADD COLUMN doubtful_parts integer NOT NULL DEFAULT 0,
  ADD COLUMN interrupted boolean NOT NULL DEFAULT false;

-- How fast an account and its conversations may send; an empty conversation is the whole account. `next_at`: when the burst is full again.
-- `blocked_until`: the platform refuses sends until then.
CREATE TABLE parley.send_limits (
  channel text NOT NULL,
  account text NOT NULL,
  conversation text NOT NULL,
  next_at timestamptz NOT NULL DEFAULT now(),
  blocked_until timestamptz,
  PRIMARY KEY (channel, account, conversation)
);
