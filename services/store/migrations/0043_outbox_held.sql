-- Where the rest of a text begins that waits until somebody asks for it; NULL: no rest waits.
ALTER TABLE parley.outbox ADD COLUMN held_at integer;
