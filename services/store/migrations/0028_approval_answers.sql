-- What a person adds to the answer about a tool call: other arguments, the reason of a denial, and that the turn ends with it.

ALTER TABLE parley.approvals
  ADD COLUMN updated_input text,
  ADD COLUMN message text,
  ADD COLUMN interrupt boolean NOT NULL DEFAULT false;
