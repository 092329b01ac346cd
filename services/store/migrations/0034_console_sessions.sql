-- Sign-ins of the web console: one-time codes and browser sessions, by the hash of the secret that the browser holds.
CREATE TABLE parley.console_sessions (
  sha256     text PRIMARY KEY,
  kind       text NOT NULL CHECK (kind IN ('code', 'session')),
  holder     text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
