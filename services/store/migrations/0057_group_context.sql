-- Messages of groups that did not mention the agent, of accounts with `group_context`: the next message that mentions it contains their texts.
CREATE TABLE parley.group_context (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  channel text NOT NULL,
  account text NOT NULL,
  external_id text NOT NULL,
  message_id text NOT NULL,
  conversation text NOT NULL,
  -- Where people read it: the group, or one of its threads.
  place text NOT NULL,
  -- The route of the messages of this place; a new session of the route drops the texts.
  route text NOT NULL,
  contact_id text NOT NULL,
  author text NOT NULL,
  -- NULL: a message contains it, or it was dropped. The row keeps the id, so that a redelivery is not stored again.
  text text,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT group_context_message_key UNIQUE (channel, account, external_id)
);
CREATE INDEX group_context_place ON parley.group_context (channel, account, place, n);
CREATE INDEX group_context_route ON parley.group_context (route) WHERE text IS NOT NULL;
CREATE INDEX group_context_age ON parley.group_context (created_at);
