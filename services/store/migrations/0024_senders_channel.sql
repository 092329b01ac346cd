-- What was said to the first version names no channel in its sender: the row beside it does. Without it nobody can read the message,
-- and its session stands still.

UPDATE parley.inbox SET sender = (jsonb_build_object('channel', channel, 'account', account) || sender::jsonb)::text
WHERE NOT sender::jsonb ? 'channel';

UPDATE parley.messages m SET sender = (jsonb_build_object('channel', i.channel, 'account', i.account) || m.sender::jsonb)::text
FROM parley.turns t JOIN parley.inbox i ON i.id = t.inbox_id
WHERE t.id = m.turn_id AND NOT m.sender::jsonb ? 'channel';
