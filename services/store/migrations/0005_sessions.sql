-- Sessions that people move between: found by title, listed without those of sub-agents.

CREATE INDEX sessions_title ON parley.sessions (lower(title)) WHERE parent_id IS NULL AND title IS NOT NULL;
-- Those that are still to be named after their first message.
CREATE INDEX sessions_untitled ON parley.sessions (id) WHERE parent_id IS NULL AND title IS NULL AND message_count > 0;
