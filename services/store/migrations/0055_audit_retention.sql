-- The retention of the audit log may delete entries that are at least 90 days old. No role may delete newer ones, or change any.
CREATE FUNCTION parley.keep_recent_entries() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN
    IF OLD.at > now() - interval '90 days' THEN
      RAISE EXCEPTION 'rows of parley.% are kept for at least 90 days', TG_TABLE_NAME;
    END IF;
    RETURN OLD;
  END $$;
CREATE TRIGGER audit_log_keep_recent BEFORE DELETE ON parley.audit_log
  FOR EACH ROW EXECUTE FUNCTION parley.keep_recent_entries();
CREATE OR REPLACE TRIGGER audit_log_append_only BEFORE UPDATE OR TRUNCATE ON parley.audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION parley.refuse_change();
