-- A message whose caller waits for its answer is a turn of its own; the turn carries the mark so that no input joins it.
ALTER TABLE parley.inbox ADD COLUMN exclusive boolean NOT NULL DEFAULT false;
ALTER TABLE parley.turns ADD COLUMN exclusive boolean NOT NULL DEFAULT false;

-- A session that serves one call (`parley run`, an API call that names no conversation): left out of lists, deleted when idle for long.
ALTER TABLE parley.sessions ADD COLUMN single_call boolean NOT NULL DEFAULT false;
CREATE INDEX sessions_single_call ON parley.sessions (updated_at) WHERE single_call;
