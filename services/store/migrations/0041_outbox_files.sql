-- Files that are sent with the text of the row: a JSON list, moved from rows of their own when the text is first claimed.
-- The platform's ids of all messages of a text.
ALTER TABLE parley.outbox
  ADD COLUMN files text,
  ADD COLUMN provider_message_ids text[] NOT NULL DEFAULT '{}';
