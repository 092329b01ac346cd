-- Taint belongs to what the model is shown, not to the turn that first read it.

-- Set by the leader with each message it writes in a tainted turn, and never cleared. NULL: not tainted, or written by an older version;
-- the sender and the parts then decide.
ALTER TABLE parley.messages ADD COLUMN tainted boolean;

-- A tainted turn made or changed the job: its runs are tainted.
ALTER TABLE parley.schedules ADD COLUMN tainted boolean NOT NULL DEFAULT false;

-- The title was taken from untrusted content: it is shown to people, not to the model of another session.
ALTER TABLE parley.sessions ADD COLUMN title_tainted boolean NOT NULL DEFAULT false;
