-- Large content lies outside under a name that is used once: a removal whose end nobody has heard of may be carried out at any time
-- later, and must not meet what was kept again meanwhile.

ALTER TABLE parley.blobs
  -- Its name outside. Null: the hash, where it was kept before names were used once.
  ADD COLUMN object text;

-- What may lie outside and is no content's: not yet (it is being written), or not any more.
CREATE TABLE parley.blob_strays (
  place text NOT NULL CHECK (place IN ('folder', 'bucket')),
  object text NOT NULL,
  -- Left alone until then.
  remove_at timestamptz NOT NULL,
  -- Its removal may be on its way: no content may have it.
  removing boolean NOT NULL DEFAULT false,
  PRIMARY KEY (place, object)
);
CREATE INDEX blob_strays_due ON parley.blob_strays (remove_at);
