-- Questions that a tool-runner asks for a call it holds. There is one row a call, as for questions of the agent; the next question of
-- the call takes the former one's place.
ALTER TABLE parley.questions
  -- Null: a question of the agent, whose answer settles the step.
  ADD COLUMN raised_as uuid,
  -- What the person said; the runner makes the call's result of it.
  ADD COLUMN answer text,
  -- Until then the runner is believed to wait; a later message is no answer.
  ADD COLUMN held_until timestamptz,
  -- Questions of this call so far.
  ADD COLUMN raised integer NOT NULL DEFAULT 0;
