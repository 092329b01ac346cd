-- A message that shows the answer of a running turn, which the answer replaces. `sending`: it has no id yet. `unknown`: it may have arrived,
-- without an id. `superseded`: another message followed it, so the answer is a message of its own.
CREATE TABLE parley.previews (
  turn_id uuid NOT NULL REFERENCES parley.turns (id) ON DELETE CASCADE,
  channel text NOT NULL,
  account text NOT NULL,
  conversation text NOT NULL,
  state text NOT NULL DEFAULT 'sending' CHECK (state IN ('sending', 'shown', 'unknown')),
  message_id text,
  superseded boolean NOT NULL DEFAULT false,
  reply_context text,
  claim_replica text NOT NULL,
  claim_incarnation text NOT NULL,
  claim_until timestamptz NOT NULL,
  PRIMARY KEY (channel, account, conversation, turn_id)
);

-- The platform's id of the preview that a text replaces.
ALTER TABLE parley.outbox ADD COLUMN replaces text;
