-- What the agent is and knows. Every version is kept as a row; the newest of a path is the document.

CREATE TABLE parley.documents (
  path text NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  -- One counter for all documents, in the order of their commits: writers take a lock before they draw from it.
  change bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  content text NOT NULL CHECK (octet_length(content) <= 262144),
  bytes integer NOT NULL,
  sha256 text NOT NULL,
  deleted boolean NOT NULL DEFAULT false,
  author text NOT NULL CHECK (author IN ('owner', 'import', 'agent', 'untrusted')),
  -- The turn whose tool call wrote it.
  turn_id uuid,
  latest boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (path, version)
);
CREATE UNIQUE INDEX documents_latest ON parley.documents (path) WHERE latest;
CREATE INDEX documents_changes ON parley.documents (change) WHERE latest;
