-- An answer to a question that a tool-runner asks is the runner's only when it has fetched it: where it dies before that, the message
-- goes back into the queue it came from.
ALTER TABLE parley.questions
  -- The message; null: nobody has answered, or the call's own result holds the answer.
  ADD COLUMN answered_by uuid,
  -- The runner has fetched it.
  ADD COLUMN fetched boolean NOT NULL DEFAULT false;
