-- The person whom a job belongs to; NULL: the owner. The key identifies them, the sender is that of the job's input, and the route leads
-- to the session of the conversation in which they created the job.
ALTER TABLE parley.schedules ADD COLUMN person_key text;
ALTER TABLE parley.schedules ADD COLUMN person text;
ALTER TABLE parley.schedules ADD COLUMN person_route text;
