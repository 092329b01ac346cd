-- Content by its hash: what people send, what tools show, what goes out with a message. Kept once, whoever refers to it.

CREATE TABLE parley.blobs (
  sha256 text PRIMARY KEY CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  bytes bigint NOT NULL CHECK (bytes > 0),
  -- Read from the content itself.
  media_type text NOT NULL,
  -- Where the content is: in blob_chunks, or outside under its hash.
  place text NOT NULL CHECK (place IN ('database', 'folder', 'bucket')),
  -- When somebody last said that he will refer to it.
  touched_at timestamptz NOT NULL DEFAULT now(),
  -- It is being removed: nobody refers to it, and nobody may any more.
  doomed_at timestamptz
);
CREATE INDEX blobs_age ON parley.blobs (touched_at);

CREATE TABLE parley.blob_chunks (
  sha256 text NOT NULL REFERENCES parley.blobs ON DELETE CASCADE,
  n integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (sha256, n)
);
-- Pictures and archives are compressed already.
ALTER TABLE parley.blob_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE parley.blob_uploads (
  -- The id of the operation that announced it.
  id uuid PRIMARY KEY,
  sha256 text NOT NULL,
  bytes bigint NOT NULL,
  done boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX blob_uploads_age ON parley.blob_uploads (created_at);

CREATE TABLE parley.blob_upload_chunks (
  upload_id uuid NOT NULL REFERENCES parley.blob_uploads ON DELETE CASCADE,
  n integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (upload_id, n)
);
ALTER TABLE parley.blob_upload_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Which sessions refer to a content, in what came in, what a tool showed or what goes out.
CREATE TABLE parley.blob_refs (
  session_id uuid NOT NULL REFERENCES parley.sessions ON DELETE CASCADE,
  sha256 text NOT NULL REFERENCES parley.blobs,
  PRIMARY KEY (session_id, sha256)
);
CREATE INDEX blob_refs_content ON parley.blob_refs (sha256);

-- JSON; null for a text.
ALTER TABLE parley.outbox ADD COLUMN attachment text;
