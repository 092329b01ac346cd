-- The gateways that share the leases of connections; a row is renewed every second.
CREATE TABLE parley.lease_members (
  owner text PRIMARY KEY,
  -- JSON: the names of the leases that it can hold.
  names text NOT NULL,
  expires_at timestamptz NOT NULL
);
