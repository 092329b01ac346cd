-- What an adapter needs to answer a message, opaque to everything else.
ALTER TABLE parley.outbox ADD COLUMN reply_context text;
