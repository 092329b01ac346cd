-- The author of each line of a version, one letter a line, as the version was written. NULL: written by an older version of the store;
-- the store fills it when it starts, and until then every line counts as untrusted.
ALTER TABLE parley.documents ADD COLUMN authors text CHECK (authors ~ '^[oiau]*$');
