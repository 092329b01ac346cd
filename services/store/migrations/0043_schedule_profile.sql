-- The profile that answers a job; null: the agent itself.
ALTER TABLE parley.schedules ADD COLUMN profile text;
