-- A prefix that no session uses any more is forgotten: whether one does has to be found without reading all of them.

CREATE INDEX sessions_prefix ON parley.sessions (prefix_hash) WHERE prefix_hash IS NOT NULL;
