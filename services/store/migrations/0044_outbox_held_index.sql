-- migration: concurrent
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_held ON parley.outbox (channel, account, conversation, id) WHERE held_at IS NOT NULL;
