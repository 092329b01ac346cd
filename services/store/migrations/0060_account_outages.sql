-- Accounts on channels that cannot work and about which the owner was told.
CREATE TABLE parley.account_outages (
  channel text NOT NULL,
  account text NOT NULL,
  told_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account)
);
