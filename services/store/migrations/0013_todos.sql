-- What the session's agent has set out to do, as JSON; null: nothing.
ALTER TABLE parley.sessions ADD COLUMN todos text;
