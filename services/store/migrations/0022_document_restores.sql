-- A restore brings an old text back with the authors that its lines had then: nobody vouches by it.

ALTER TABLE parley.documents
  -- The version whose text this is again; null: it was written.
  ADD COLUMN restored_from integer CHECK (restored_from > 0 AND restored_from < version),
  -- Of the lines that are new in it; null: its author's.
  ADD COLUMN line_author text CHECK (line_author IN ('owner', 'import', 'agent', 'untrusted'));
