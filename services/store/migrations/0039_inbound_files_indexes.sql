-- migration: concurrent
CREATE INDEX CONCURRENTLY IF NOT EXISTS inbox_files ON parley.inbox (session_id) WHERE files_due IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS inbox_message ON parley.inbox (channel, account, message_id) WHERE message_id IS NOT NULL;
