-- How long a model call took until its first token, and in all, with retries. NULL: made by an older version, or no token streamed.
ALTER TABLE parley.steps ADD COLUMN duration_ms integer;
ALTER TABLE parley.steps ADD COLUMN first_token_ms integer;
