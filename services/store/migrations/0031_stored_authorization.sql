-- The permission check that an approval question resumes from, and what the hooks on a tool's result returned.

ALTER TABLE parley.approvals
  -- JSON, as text like the arguments, which may contain characters that jsonb refuses; null: an older agent-core asked.
  ADD COLUMN authorization_json text;

ALTER TABLE parley.steps
  -- JSON; null: the hooks have not run.
  ADD COLUMN hook_outcome text;
