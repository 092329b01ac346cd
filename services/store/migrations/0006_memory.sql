-- Memory: an index of the notes (MEMORY.md, memory/**) and of what was said. It is made of what stands in documents and messages
-- and can be thrown away at any time.

CREATE TABLE parley.memory_documents (
  path text PRIMARY KEY,
  -- What the index was made of, and how; anything else is made anew.
  version integer NOT NULL,
  made_by text NOT NULL,
  -- Who wrote each line: one letter a line (o owner, i import, a agent, u untrusted).
  authors text NOT NULL
);

CREATE TABLE parley.memory_sessions (
  session_id uuid PRIMARY KEY REFERENCES parley.sessions ON DELETE CASCADE,
  -- The last message of the log that was looked at.
  seq bigint NOT NULL,
  made_by text NOT NULL
);

CREATE SEQUENCE parley.memory_chunk_ids;
CREATE TABLE parley.memory_chunks (
  id bigint PRIMARY KEY,
  -- Whose memory it is, and which kind: `notes`, `said:owner`, `said:<channel>:<account>:<contact>`. Every question names its
  -- scopes; what is of no importance to a scope is not even counted in it.
  scope text NOT NULL,
  path text,
  session_id uuid REFERENCES parley.sessions ON DELETE CASCADE,
  turn_id uuid,
  seq bigint,
  from_line integer NOT NULL,
  to_line integer NOT NULL,
  text text NOT NULL,
  -- Of the text, hexadecimal.
  sha256 text NOT NULL,
  -- Words in it, each as often as it occurs.
  length integer NOT NULL,
  author text NOT NULL CHECK (author IN ('owner', 'import', 'agent', 'untrusted')),
  speaker text,
  day date,
  CHECK ((path IS NULL) <> (session_id IS NULL))
);
CREATE INDEX memory_chunks_scope ON parley.memory_chunks (scope) INCLUDE (length);
CREATE INDEX memory_chunks_path ON parley.memory_chunks (path) WHERE path IS NOT NULL;
CREATE INDEX memory_chunks_session ON parley.memory_chunks (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX memory_chunks_sha256 ON parley.memory_chunks (sha256);

-- Which words occur where, as PostgreSQL reads them in the language of the settings.
CREATE TABLE parley.memory_words (
  scope text NOT NULL,
  word text NOT NULL,
  chunk_id bigint NOT NULL REFERENCES parley.memory_chunks ON DELETE CASCADE,
  count smallint NOT NULL,
  -- Of the chunk: a question is answered from the index alone.
  length integer NOT NULL,
  PRIMARY KEY (scope, word, chunk_id) INCLUDE (count, length)
);
CREATE INDEX memory_words_chunk ON parley.memory_words (chunk_id);

-- Vectors of texts, by the model that made them; a text that moves, or stands in two places, keeps its vector.
CREATE TABLE parley.memory_vectors (
  model text NOT NULL,
  sha256 text NOT NULL,
  vector real[] NOT NULL,
  PRIMARY KEY (model, sha256)
);

-- For words that are mistyped. Where the extension is not installed, or may not be made, they are not found.
DO $$
BEGIN
  CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA parley;
EXCEPTION WHEN OTHERS THEN
  RAISE NOTICE 'no pg_trgm: %', SQLERRM;
END $$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'parley_store') THEN
    GRANT USAGE ON SEQUENCE parley.memory_chunk_ids TO parley_store;
  END IF;
END $$;
