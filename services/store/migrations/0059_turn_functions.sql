-- The two writes of a plain turn, each one call: a statement with all of their tables in it costs PostgreSQL more to set up than to run.
-- Each statement of a VOLATILE function has a snapshot of its own, so what follows a wait for a lock sees what was committed before it.

CREATE TYPE parley.stored_message AS (
  -- Null: a message with this identity is stored already, and nothing was changed.
  id uuid,
  session_id uuid,
  -- An open question in the session, or of a job anywhere, waits for people of this trust: the message may be the answer.
  asked boolean,
  -- The approval that the running turn waits for.
  held_up_by text,
  -- Of the started turn; null: none was started.
  started_at timestamptz,
  -- Of the message in the session's log, and the session as its turn sees it.
  seq bigint,
  sent_at timestamptz,
  key text,
  view text,
  overrides text,
  profile text,
  parent_id uuid,
  depth smallint,
  prefix_hash text
);

-- Stores a message under a route: in the session that the route is bound to, otherwise in the session with its name, which its first
-- message creates. Rows of one session get their numbers in commit order, because the session's row is locked first.
-- `leader`: the epoch of a leader with free turns; the message then starts the turn `new_turn` if its session is idle. Null: it starts none.
CREATE FUNCTION parley.put_message(
  route text, channel text, account text, external_id text, priority integer, parts text, reply_to text, sender text,
  new_session uuid, new_message uuid, mode text, trust text, window_ms integer, trace text, exclusive boolean,
  single_call boolean, profile text, conversation text, message_id text, sent_at timestamptz, files_due_ms integer, files_claim_ms integer,
  first_fence integer, leader bigint, new_turn uuid
) RETURNS SETOF parley.stored_message LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  stored parley.stored_message;
  starts boolean := false;
  bound uuid;
  session record;
BEGIN
  IF leader IS NOT NULL THEN
    -- Never waits: the message would wait for the end of a takeover. This lock comes before the lock on the session in every writer.
    starts := pg_try_advisory_xact_lock_shared(7305510218);
    starts := starts AND EXISTS (SELECT FROM parley.leadership l WHERE l.name = 'agent-core' AND l.epoch = leader);
  END IF;

  SELECT b.session_id INTO bound FROM parley.bindings b WHERE b.route = put_message.route;
  IF bound IS NOT NULL THEN
    SELECT * INTO session FROM parley.sessions s WHERE s.id = bound FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
  ELSE
    SELECT * INTO session FROM parley.sessions s WHERE s.key = put_message.route FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      INSERT INTO parley.sessions AS s (id, key, single_call, profile)
      VALUES (new_session, put_message.route, put_message.single_call, put_message.profile)
      ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING s.* INTO session;
    END IF;
  END IF;
  stored.session_id := session.id;

  -- An exclusive message is never an answer.
  stored.asked := NOT exclusive AND (EXISTS (
    SELECT FROM parley.questions q WHERE q.session_id = session.id AND q.state = 'open' AND q.trust = put_message.trust AND q.expires_at > now()
  ) OR EXISTS (
    SELECT FROM parley.turns t JOIN parley.questions q ON q.turn_id = t.id
    WHERE t.state = 'running' AND t.trust = 'cron' AND q.state = 'open' AND q.trust = put_message.trust AND q.expires_at > now()
      AND (q.held_until IS NULL OR q.held_until > now())
  ));
  starts := starts
    AND NOT EXISTS (SELECT FROM parley.turns t WHERE t.session_id = session.id AND t.state = 'running')
    AND NOT EXISTS (SELECT FROM parley.inbox i WHERE i.session_id = session.id AND i.state = 'queued')
    AND NOT EXISTS (
      SELECT FROM parley.questions q JOIN parley.turns t ON t.id = q.turn_id
      WHERE q.state = 'open' AND q.expires_at > now() AND (q.session_id = session.id OR t.trust = 'cron')
    );

  INSERT INTO parley.inbox AS i (
    id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust, ready_at, trace, exclusive,
    conversation, message_id, sent_at, files_due, files_claimed_until, files_fence, state, turn_id
  ) VALUES (
    new_message, session.id, session.inbox_seq + 1, put_message.channel, put_message.account, put_message.external_id, put_message.priority,
    put_message.parts, put_message.reply_to, put_message.sender, put_message.mode, put_message.trust,
    now() + window_ms * interval '1 millisecond', put_message.trace, put_message.exclusive,
    put_message.conversation, put_message.message_id, put_message.sent_at,
    now() + files_due_ms * interval '1 millisecond', now() + files_claim_ms * interval '1 millisecond',
    CASE WHEN files_due_ms IS NULL THEN 0 ELSE first_fence END,
    CASE WHEN starts THEN 'claimed' ELSE 'queued' END, CASE WHEN starts THEN new_turn END
  ) ON CONFLICT (channel, account, external_id) DO NOTHING RETURNING i.id INTO stored.id;

  IF stored.id IS NULL THEN
    RETURN NEXT stored;
    RETURN;
  END IF;

  UPDATE parley.sessions AS s SET
    inbox_seq = s.inbox_seq + 1, status = 'active', single_call = s.single_call OR (bound IS NULL AND put_message.single_call),
    -- A profile is set once, for a session that has no messages yet.
    profile = CASE WHEN s.seq = 0 AND s.inbox_seq = 0 THEN coalesce(put_message.profile, s.profile) ELSE s.profile END,
    seq = CASE WHEN starts THEN s.seq + 1 ELSE s.seq END,
    message_count = CASE WHEN starts THEN s.message_count + 1 ELSE s.message_count END,
    updated_at = CASE WHEN starts THEN now() ELSE s.updated_at END
  WHERE s.id = session.id
  RETURNING s.seq, s.key, s.view, s.overrides, s.profile, s.parent_id, s.depth, s.prefix_hash
  INTO stored.seq, stored.key, stored.view, stored.overrides, stored.profile, stored.parent_id, stored.depth, stored.prefix_hash;

  IF starts THEN
    INSERT INTO parley.turns AS t (id, session_id, inbox_id, state, epoch, reply_to, trust, exclusive)
    VALUES (new_turn, session.id, new_message, 'running', leader, put_message.reply_to, put_message.trust, put_message.exclusive)
    RETURNING t.started_at INTO stored.started_at;
    INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, sender, sent_at)
    VALUES (session.id, stored.seq, new_turn, 'user', put_message.parts, put_message.sender, put_message.sent_at);
    stored.sent_at := put_message.sent_at;
  ELSE
    SELECT a.id INTO stored.held_up_by FROM parley.approvals a JOIN parley.turns t ON t.id = a.turn_id
    WHERE a.session_id = session.id AND a.state = 'pending' AND a.expires_at > now() AND t.state = 'running'
    ORDER BY a.requested_at DESC LIMIT 1;
  END IF;
  RETURN NEXT stored;
END $$;

CREATE TYPE parley.committed_step AS (
  -- False: the turn is not at this step of this leader, or the leader's epoch is over; nothing else is then set, and nothing was changed.
  turn_found boolean,
  -- Results before the step, and those of them that are still missing.
  results_count integer,
  results_open integer,
  results_seq bigint,
  message_seq bigint,
  note_seq bigint,
  finish_seq bigint,
  at timestamptz,
  input bigint,
  output bigint,
  cache_read bigint,
  cache_write bigint,
  cost_micros bigint,
  unpriced_calls integer,
  queued boolean,
  steerable boolean,
  overrides text,
  cancel_requested boolean,
  has_parent boolean
);

-- Commits a model call: results before it, its message, its tool calls, and the end of the turn if `end_state` is not null.
-- `operation`: the call is the whole operation. It then also takes the fence, settles results, remembers the operation, and raises a check
-- violation where it may not be committed: when the results are not the `expected` ones, and where the turn's end has to be reported to its
-- parent. Null: the caller has taken the fence, and checks the outcome.
CREATE FUNCTION parley.commit_step(
  operation uuid, of_turn uuid, writer_epoch bigint, step integer, parts text, model text, stop_reason text, usage text,
  input bigint, output bigint, cache_read bigint, cache_write bigint, end_state text, exit_reason text, answer text,
  call_ids text[], tools text[], classes text[], inputs text[], cost_micros bigint, note text, prefix_hash text, tainted boolean,
  duration_ms integer, first_token_ms integer, request text, expected integer, settled_n integer[], settled_states text[], settled_results text[]
) RETURNS parley.committed_step LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  done parley.committed_step;
  turn record;
  results text;
  ends integer := CASE WHEN end_state IS NULL THEN 0 ELSE 1 END;
  notes integer := CASE WHEN note IS NULL THEN 0 ELSE 1 END;
  has_results integer;
  unpriced integer := CASE WHEN commit_step.cost_micros IS NULL THEN 1 ELSE 0 END;
BEGIN
  done.turn_found := false;
  IF operation IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock_shared(7305510218);
    IF NOT EXISTS (SELECT FROM parley.leadership l WHERE l.name = 'agent-core' AND l.epoch = writer_epoch) THEN RETURN done; END IF;
  END IF;

  UPDATE parley.turns AS t SET
    next_step = step + 1 + cardinality(call_ids),
    model_steps = t.model_steps + 1,
    -- Progress resets the counter: only consecutive claims without progress count.
    attempts = 1,
    input_tokens = t.input_tokens + commit_step.input, output_tokens = t.output_tokens + commit_step.output,
    cache_read_tokens = t.cache_read_tokens + commit_step.cache_read, cache_write_tokens = t.cache_write_tokens + commit_step.cache_write,
    cost_micros = t.cost_micros + coalesce(commit_step.cost_micros, 0), unpriced_calls = t.unpriced_calls + unpriced,
    state = coalesce(end_state, t.state), exit_reason = commit_step.exit_reason, answer = commit_step.answer,
    finished_at = CASE WHEN ends = 1 THEN now() END
  WHERE t.id = of_turn AND t.state = 'running' AND t.epoch = writer_epoch AND t.next_step = step
  RETURNING t.session_id, t.trust, t.exclusive, t.cancel_requested, t.parent_turn_id, t.cost_micros, t.unpriced_calls,
            t.input_tokens, t.output_tokens, t.cache_read_tokens, t.cache_write_tokens INTO turn;
  IF NOT FOUND THEN RETURN done; END IF;
  done.turn_found := true;
  done.has_parent := turn.parent_turn_id IS NOT NULL;
  done.cancel_requested := turn.cancel_requested;
  done.input := turn.input_tokens;
  done.output := turn.output_tokens;
  done.cache_read := turn.cache_read_tokens;
  done.cache_write := turn.cache_write_tokens;
  done.cost_micros := turn.cost_micros;
  done.unpriced_calls := turn.unpriced_calls;
  done.at := now();

  IF cardinality(settled_n) > 0 THEN
    UPDATE parley.steps AS s SET state = settled.state, result = settled.result, finished_at = now()
    FROM unnest(settled_n, settled_states, settled_results) AS settled(n, state, result)
    WHERE s.turn_id = of_turn AND s.n = settled.n AND s.kind = 'tool' AND s.class = 'pure' AND s.message_seq IS NULL;
  END IF;
  IF step > 1 THEN
    SELECT count(*), count(*) FILTER (WHERE s.result IS NULL), '[' || string_agg(s.result, ',' ORDER BY s.n) || ']'
    INTO done.results_count, done.results_open, results
    FROM parley.steps s WHERE s.turn_id = of_turn AND s.kind = 'tool' AND s.message_seq IS NULL;
  ELSE
    done.results_count := 0;
    done.results_open := 0;
  END IF;
  IF operation IS NOT NULL AND (done.results_open > 0 OR done.results_count <> expected OR (ends = 1 AND done.has_parent)) THEN
    RAISE check_violation USING MESSAGE = 'the step cannot be committed in one call';
  END IF;
  has_results := CASE WHEN done.results_count > 0 THEN 1 ELSE 0 END;

  UPDATE parley.sessions AS s SET
    seq = s.seq + 1 + has_results + notes + ends,
    message_count = s.message_count + 1 + has_results + notes,
    input_tokens = s.input_tokens + commit_step.input, output_tokens = s.output_tokens + commit_step.output,
    cache_read_tokens = s.cache_read_tokens + commit_step.cache_read, cache_write_tokens = s.cache_write_tokens + commit_step.cache_write,
    cost_micros = s.cost_micros + coalesce(commit_step.cost_micros, 0), unpriced_calls = s.unpriced_calls + unpriced,
    prefix_hash = coalesce(commit_step.prefix_hash, s.prefix_hash),
    updated_at = now()
  WHERE s.id = turn.session_id
  RETURNING s.seq - ends - notes, s.overrides INTO done.message_seq, done.overrides;

  IF has_results = 1 AND done.results_open = 0 THEN
    done.results_seq := done.message_seq - 1;
    INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, tainted)
    VALUES (turn.session_id, done.results_seq, of_turn, 'tool', results, commit_step.tainted);
    UPDATE parley.steps AS s SET message_seq = done.results_seq
    WHERE s.turn_id = of_turn AND s.kind = 'tool' AND s.message_seq IS NULL;
  END IF;
  INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model, tainted)
  VALUES (turn.session_id, done.message_seq, of_turn, 'assistant', commit_step.parts, commit_step.model, commit_step.tainted);
  IF notes = 1 THEN
    done.note_seq := done.message_seq + 1;
    INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, tainted)
    VALUES (turn.session_id, done.note_seq, of_turn, 'user', note, commit_step.tainted);
  END IF;
  INSERT INTO parley.steps (turn_id, n, kind, state, epoch, model, stop_reason, usage, cost_micros, message_seq, finished_at,
                            duration_ms, first_token_ms, request)
  VALUES (of_turn, step, 'model', 'done', writer_epoch, commit_step.model, commit_step.stop_reason, commit_step.usage,
          commit_step.cost_micros, done.message_seq, now(), commit_step.duration_ms, commit_step.first_token_ms, commit_step.request);
  IF cardinality(call_ids) > 0 THEN
    INSERT INTO parley.steps (turn_id, n, kind, state, epoch, call_id, tool, class, input)
    SELECT of_turn, step + call.ordinality, 'tool', 'intended', writer_epoch, call.id, call.tool, call.class, call.input
    FROM unnest(call_ids, tools, classes, inputs) WITH ORDINALITY AS call(id, tool, class, input, ordinality);
  END IF;

  IF ends = 1 THEN
    done.finish_seq := done.message_seq + 1;
    INSERT INTO parley.events (session_id, seq, type, turn_id) VALUES (turn.session_id, done.finish_seq, 'turn.finished', of_turn);
    UPDATE parley.inbox AS i SET state = CASE end_state WHEN 'cancelled' THEN 'cancelled' ELSE 'done' END WHERE i.turn_id = of_turn;
    done.queued := EXISTS (
      SELECT FROM parley.inbox i WHERE i.session_id = turn.session_id AND i.state = 'queued' AND i.ready_at <= now()
    );
    done.steerable := false;
  ELSE
    done.queued := false;
    done.steerable := NOT turn.exclusive AND EXISTS (
      SELECT FROM parley.inbox i
      WHERE i.session_id = turn.session_id AND i.state = 'queued' AND i.mode = 'steer' AND i.trust = turn.trust
        AND i.parent_turn_id IS NULL AND NOT i.exclusive
    );
  END IF;

  IF operation IS NOT NULL THEN
    INSERT INTO parley.ops (op_id, result) VALUES (operation, row_to_json(done)::text);
  END IF;
  RETURN done;
END $$;
