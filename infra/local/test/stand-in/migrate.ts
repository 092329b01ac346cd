// Stands in for the migration: ends well when it was given a database.

process.exit(process.env.DATABASE_URL?.startsWith("postgres://parley_owner:") === true ? 0 : 1);
