// A fake of the migration: exits with 0 if it has a database URL.

process.exit(process.env.DATABASE_URL?.startsWith("postgres://parley_owner:") === true ? 0 : 1);
