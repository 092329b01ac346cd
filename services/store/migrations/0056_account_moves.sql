-- Accounts on channels whose connections an operator moved to a gateway.
CREATE TABLE parley.account_moves (
  channel text NOT NULL,
  account text NOT NULL,
  -- The name of the gateway's replica; while it is away, the gateways choose another one.
  replica text NOT NULL,
  moved_by text NOT NULL,
  moved_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (channel, account)
);
