-- What belongs to a session, or to a turn of it, found without reading the whole table: sessions are copied and deleted, and each
-- row that goes is looked for in every table that refers to it.
CREATE INDEX turns_session ON parley.turns (session_id);
CREATE INDEX messages_turn ON parley.messages (turn_id);
CREATE INDEX approvals_session ON parley.approvals (session_id, requested_at);
CREATE INDEX questions_session ON parley.questions (session_id);
