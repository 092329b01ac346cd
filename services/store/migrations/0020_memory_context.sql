-- What was said last in a session is read before something is added to its index: the next message is found by those words, too.
DROP INDEX parley.memory_chunks_session;
CREATE INDEX memory_chunks_session ON parley.memory_chunks (session_id, id) WHERE session_id IS NOT NULL;
COMMENT ON COLUMN parley.memory_words.count IS 'In halves: an own word is two, one of what was said just before is one.';
COMMENT ON COLUMN parley.memory_chunks.length IS 'Of its own words and of those said just before, in halves; its day makes it no longer.';
