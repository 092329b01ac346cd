-- Calls of tools that the program which drives a session runs itself: offered to it, and held by one of its processes.
CREATE TABLE parley.program_calls (
  turn_id uuid NOT NULL REFERENCES parley.turns (id) ON DELETE CASCADE,
  n integer NOT NULL,
  input text NOT NULL,
  held_by uuid,
  held_until timestamptz NOT NULL,
  PRIMARY KEY (turn_id, n)
);
