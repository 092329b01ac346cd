-- migration: concurrent
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_words ON parley.messages USING gin (parley.message_words(parts)) WHERE role <> 'tool';
