-- The arguments of a tool call that hooks changed without a question to a person: a new leader runs the call with the same ones.
ALTER TABLE parley.steps ADD COLUMN authorization_json text;
