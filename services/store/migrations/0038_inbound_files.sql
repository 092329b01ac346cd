-- Input whose files are fetched after its commit, and what later changes of a message refer to.
ALTER TABLE parley.inbox
  -- JSON: the conversation on the platform.
  ADD COLUMN conversation text,
  -- JSON: the platform's id that edits and deletions name.
  ADD COLUMN message_id text,
  ADD COLUMN sent_at timestamptz,
  -- Files are missing: until then a replica may fetch them, afterwards notes replace them. Null: complete.
  ADD COLUMN files_due timestamptz,
  ADD COLUMN files_fence integer NOT NULL DEFAULT 0,
  ADD COLUMN files_claimed_until timestamptz;
ALTER TABLE parley.messages ADD COLUMN sent_at timestamptz;
