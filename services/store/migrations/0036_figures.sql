-- migration: concurrent
-- For the metrics: rows that stay rare, however many messages there were.
CREATE INDEX CONCURRENTLY IF NOT EXISTS inbox_dead ON parley.inbox (received_at) WHERE state = 'dead';
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_unknown ON parley.outbox (id) WHERE state = 'unknown';
