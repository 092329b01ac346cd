// Replaces the migration program where the database is a copy of a migrated one.
process.exitCode = 0;
