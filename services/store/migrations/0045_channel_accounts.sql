-- Accounts of channels that were added while the cluster ran, in addition to those of parley.toml. Secrets are not stored here.
CREATE TABLE parley.channel_accounts (
  channel text NOT NULL,
  account text NOT NULL,
  settings text NOT NULL,
  identity text,
  revision bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  added_by text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account)
);
