-- The whole call that an approval is about, and the permission rules that an approval grants until its turn ends.

ALTER TABLE parley.approvals
  -- JSON: the arguments as text; null in rows of older versions.
  ADD COLUMN input text,
  -- JSON: a list of permission rules; null: none.
  ADD COLUMN grants text;
