-- Runs once, as the superuser, when the container's data folder is new. It creates the role that owns the schema, the role without DDL
-- rights, and their database, as `npm start` does (infra/local/src/servers/postgres.ts).
\getenv owner_password POSTGRES_OWNER_PASSWORD
\getenv store_password POSTGRES_STORE_PASSWORD
-- Or from files, whose paths are in variables with `_FILE` appended, as for the superuser's password.
\if :{?owner_password}
\else
\set owner_password `cat "$POSTGRES_OWNER_PASSWORD_FILE"`
\set store_password `cat "$POSTGRES_STORE_PASSWORD_FILE"`
\endif
CREATE ROLE parley_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE parley_store LOGIN PASSWORD :'store_password';
ALTER ROLE parley_store SET idle_in_transaction_session_timeout = '2s';
ALTER ROLE parley_store SET statement_timeout = '5s';
ALTER ROLE parley_store SET transaction_timeout = '10s';
CREATE DATABASE parley OWNER parley_owner;
REVOKE ALL ON DATABASE parley FROM PUBLIC;
GRANT CONNECT ON DATABASE parley TO parley_store;
