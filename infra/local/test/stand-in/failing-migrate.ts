// Stands in for a migration that cannot be done.

process.stderr.write("migration 0007 does not apply\n");
process.exit(1);
