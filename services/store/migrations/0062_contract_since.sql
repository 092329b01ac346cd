-- The oldest version that works after a migration that removes something, so that an older store can refuse to start; null: any version.
ALTER TABLE parley.schema_migrations ADD COLUMN contract_since text;
