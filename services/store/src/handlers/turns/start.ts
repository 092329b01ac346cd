// Starts a turn from the first queued row of a session and the rows that may share the turn.
import {
  newId,
  noCost,
  noUsage,
  widestAnswerer,
  type ClaimedTurn,
  type Message,
  type SessionState,
  type store,
  type TaskMode,
  type TrustLevel,
} from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import {
  addressOf,
  messageOf,
  otherAddresses,
  senderOf,
  sessionStateOf,
  type SessionStateRow,
} from "../../db/mappers.ts";
import { singleRow, type LockedSession, type Outcome } from "../../db/operation.ts";
import {
  earlierUse,
  exclusiveOf,
  parentOf,
  rootOf,
  visibleAfter,
  treeCost,
  webhookOf,
  type Claim,
  type ClaimInput,
} from "./claim-result.ts";
import { waitsForFiles } from "../inbox/files.ts";
import { newest } from "../sessions/history.ts";

export interface StartedRow extends SessionStateRow {
  turn_id: string;
  started_at: string;
  trust: TrustLevel;
  exclusive: boolean;
  trace: string | null;
  parent_turn_id: string | null;
  parent_step: number | null;
  parent_mode: TaskMode | null;
  root_turn_id: string | null;
  cancel_requested: boolean;
  inbox_id: string;
  parts: string;
  sender: string;
  reply_to: string | null;
  sent_at: string | null;
  seq: number;
}

/** Maximum rows that a turn starts with; further rows join it later. */
const maxRows = 50;

// The next row by arrival, or by priority, which rises with the waiting time, and the rows that may share its turn: all of equal trust with mode `steer`,
// or those of one sender in a coalescing window. A caller waits for the answer to an exclusive row: that row is a turn alone, and rows
// before and after it never share a turn, so that later input is not answered first. A later row with mode `interrupt`, which found no
// running turn to stop, stops this one: as far as its sender may stop it (the owner any turn, others their own), and no exclusive one.
const startTurn = {
  name: "claim-start",
  text: `
    WITH next AS (
      SELECT id, seq, mode, trust, sender, reply_to, parent_turn_id, parent_step, parent_mode, trace, exclusive FROM parley.inbox
      WHERE session_id = $1 AND state = 'queued' AND ready_at <= now() AND NOT ${waitsForFiles("inbox")}
        AND NOT EXISTS (SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running')
      ORDER BY CASE WHEN $5 THEN 0 ELSE priority - floor(extract(epoch FROM now() - received_at) / $4) END, seq LIMIT 1
    ), bounds AS (
      SELECT max(i.seq) FILTER (WHERE i.seq < next.seq) AS after_seq, min(i.seq) FILTER (WHERE i.seq > next.seq) AS before_seq
      FROM next LEFT JOIN parley.inbox i ON i.session_id = $1 AND i.state = 'queued' AND i.exclusive GROUP BY next.seq
    ), taken AS (
      SELECT i.id, i.parts, i.reply_to, i.sender, i.sent_at, row_number() OVER (ORDER BY i.seq) AS nth
      FROM parley.inbox i, next, bounds
      WHERE i.session_id = $1 AND i.state = 'queued' AND (
        i.id = next.id OR (
          NOT next.exclusive AND (bounds.after_seq IS NULL OR i.seq > bounds.after_seq) AND (bounds.before_seq IS NULL OR i.seq < bounds.before_seq)
          AND next.parent_turn_id IS NULL AND i.parent_turn_id IS NULL AND i.mode = next.mode AND i.trust = next.trust
          AND (next.mode = 'steer' OR (next.mode = 'coalesce' AND i.sender = next.sender)) AND NOT ${waitsForFiles("i")}
        )
      )
      ORDER BY i.seq LIMIT ${maxRows}
    ), turn AS (
      INSERT INTO parley.turns (id, session_id, inbox_id, state, epoch, reply_to, trust, parent_turn_id, parent_step, parent_mode, root_turn_id, exclusive, cancel_requested)
      SELECT $3, $1, id, 'running', $2, reply_to, trust, parent_turn_id, parent_step, parent_mode,
             (SELECT coalesce(p.root_turn_id, p.id) FROM parley.turns p WHERE p.id = next.parent_turn_id), exclusive,
             NOT exclusive AND EXISTS (
               SELECT FROM parley.inbox i WHERE i.session_id = $1 AND i.state = 'queued' AND i.mode = 'interrupt' AND i.seq > next.seq
                 AND (i.trust = 'owner' OR i.sender = next.sender))
      FROM next
      RETURNING id, started_at, trust, parent_turn_id, parent_step, parent_mode, root_turn_id, cancel_requested
    ), claimed AS (
      UPDATE parley.inbox SET state = 'claimed', turn_id = turn.id FROM turn, taken WHERE inbox.id = taken.id
    ), session AS (
      UPDATE parley.sessions SET
        seq = seq + (SELECT count(*) FROM taken), message_count = message_count + (SELECT count(*) FROM taken), updated_at = now()
      FROM turn WHERE sessions.id = $1
      RETURNING sessions.seq - (SELECT count(*) FROM taken) AS before, view, overrides, profile, parent_id, depth, prefix_hash
    ), message AS (
      INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, sender, sent_at)
      SELECT $1, session.before + taken.nth, turn.id, 'user', taken.parts, taken.sender, taken.sent_at FROM session, turn, taken
    )
    SELECT turn.id AS turn_id, turn.started_at, turn.trust, turn.parent_turn_id, turn.parent_step, turn.parent_mode, turn.root_turn_id,
           turn.cancel_requested, next.trace, next.exclusive, taken.id AS inbox_id, taken.parts, taken.sender, taken.reply_to, taken.sent_at, session.before + taken.nth AS seq,
           session.view, session.overrides, session.profile, session.parent_id, session.depth, session.prefix_hash
    FROM turn, next, taken, session ORDER BY taken.nth`,
};

/** Default seconds of waiting that raise a row by one priority level. */
const defaultAgeingSeconds = 300;

/** The statement that starts the next turn; it returns no row when nothing is queued or a turn is running. */
export function startStatement({ sessionId, epoch, ageingSeconds = defaultAgeingSeconds, order }: ClaimInput) {
  return { ...startTurn, values: [sessionId, epoch, newId(), ageingSeconds, order === "arrival"] };
}

/** The claimed turn from the rows of `startStatement`; undefined when it started none. */
export async function started(
  client: PoolClient,
  input: ClaimInput,
  session: LockedSession,
  rows: StartedRow[],
): Promise<Outcome<Claim> | undefined> {
  const first = rows[0];
  if (first === undefined) return undefined;
  const { turn, state, messages } = newTurn(input.sessionId, session.key, first, rows);
  const inTree =
    first.root_turn_id === null
      ? {}
      : { root: await rootOf(client, first.root_turn_id), treeCost: await treeCost(client, first.root_turn_id) };
  // Usually the leader lacks only the new message: then no history has to be read.
  const history =
    rows.length === 1 && input.knownSeq === session.seq
      ? { messages, gap: false }
      : await newest(client, input.sessionId, { afterSeq: visibleAfter(input, state) });
  return {
    result: {
      status: "started",
      turn: { ...turn, ...inTree, ...(await earlierUse(client, input, first.turn_id)) },
      session: state,
      steerable: rows.length === maxRows && !first.exclusive,
      messages: history.messages,
      gap: history.gap,
    },
    memo: { status: "started", turnId: first.turn_id },
  };
}

/** A turn without a parent, as it is at its start, with its input. `first`: the first of `rows`. */
function newTurn(
  sessionId: string,
  sessionKey: string,
  first: StartedRow,
  rows: StartedRow[],
): { turn: ClaimedTurn; state: SessionState; messages: Message[] } {
  const messages = rows.map<Message>((row) =>
    messageOf({ ...row, role: "user", model: null, tainted: null, created_at: row.started_at }),
  );
  const turn: ClaimedTurn = {
    turnId: first.turn_id,
    sessionId,
    sessionKey,
    replyTo: addressOf(first.reply_to),
    alsoTo: otherAddresses(
      first.reply_to,
      rows.map((row) => row.reply_to),
    ),
    inboxIds: rows.map((row) => row.inbox_id),
    trust: first.trust,
    ...exclusiveOf(first.exclusive, first.sender),
    root: {
      turnId: first.turn_id,
      trust: first.trust,
      replyTo: addressOf(first.reply_to),
      sessionKey,
      ...webhookOf(rows.map((row) => senderOf(row.sender))),
      approvals: widestAnswerer(messages.map(({ from }) => from?.approvals)),
    },
    parent: parentOf(first),
    usage: noUsage,
    cost: noCost,
    treeCost: noCost,
    trace: first.trace,
    attempt: 1,
    nextStep: 1,
    modelSteps: 0,
    openSteps: [],
    cancelRequested: first.cancel_requested,
    startedAt: first.started_at,
    waitedMs: 0,
  };
  return { turn, state: sessionStateOf(first), messages };
}

// A turn also starts in the commit of the message that is its input, which saves the leader's claim: only for an idle session with this one
// message, and while the leader has free turns (`parley.put_message`). A leader that misses the hint finds the running turn with its sweep.

/** The message of a turn that started with it. */
type ArrivedRow = Omit<
  StartedRow,
  "parent_turn_id" | "parent_step" | "parent_mode" | "root_turn_id" | "cancel_requested"
> & {
  session_id: string;
  key: string;
};

/** The turn that the commit of a message started, for the leader with this epoch. */
export function startedTurnOf(epoch: number, arrived: ArrivedRow): store.StartedTurn {
  const alone = { parent_turn_id: null, parent_step: null, parent_mode: null, root_turn_id: null };
  const row = { ...arrived, ...alone, cancel_requested: false };
  const { turn, state, messages } = newTurn(row.session_id, row.key, row, [row]);
  return { epoch, turn, session: state, message: singleRow(messages) };
}
