// A fake of a migration that fails.

process.stderr.write("migration 0007 does not apply\n");
process.exit(1);
