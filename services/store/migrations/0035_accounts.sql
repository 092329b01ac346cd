-- Accounts on channels that an operator paused: nothing is received or sent.
CREATE TABLE parley.account_pauses (
  channel text NOT NULL,
  account text NOT NULL,
  paused_by text NOT NULL,
  paused_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account)
);
