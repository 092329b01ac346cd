-- Named tokens of the API by the hash of their secret, and the audit log, whose rows are never changed.
CREATE TABLE parley.api_tokens (
  sha256     text PRIMARY KEY,
  name       text NOT NULL,
  scopes     text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  created_by text NOT NULL,
  expires_at timestamptz,
  used_at    timestamptz,
  revoked_at timestamptz
);
CREATE TABLE parley.audit_log (
  n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now(),
  actor   text NOT NULL,
  action  text NOT NULL,
  target  text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('requested', 'failed', 'refused'))
);
CREATE FUNCTION parley.refuse_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'rows of parley.% are never changed', TG_TABLE_NAME; END $$;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON parley.audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION parley.refuse_change();
