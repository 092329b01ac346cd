-- migration: concurrent
CREATE INDEX CONCURRENTLY IF NOT EXISTS schedules_person ON parley.schedules (person_key) WHERE person_key IS NOT NULL;
