-- The session that the direct messages of a linked person join. NULL: that of their conversation.
ALTER TABLE parley.contacts ADD COLUMN route text;
