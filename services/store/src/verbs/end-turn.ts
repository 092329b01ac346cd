// Ending a turn, and what goes out with a step: shared by the closing step, by cancellation and by burial.
import {
  type store,
  textOf,
  WireError,
  type DurableEvent,
  type Finish,
  type InputOf,
  type Message,
  type Outgoing,
  type OutputOf,
  type Part,
  type ToolResult,
} from "@parley/contracts";
import type { Database, PoolClient } from "../database.ts";
import { finishedEvent, stepColumns, toolStepOf, turnColumns, turnOf, type StepRow, type TurnRow } from "../rows.ts";
import { only, perform } from "../transaction.ts";
import { queueText } from "./queue-text.ts";

interface Ending {
  turnId: string;
  /** Null where the caller has already made sure that the turn is its to end. */
  epoch: number | null;
  parts: Part[];
  model: string | null;
  unsettled: string;
  outgoing: Outgoing[];
  finish: Finish;
}

export function finish(
  database: Database,
  input: InputOf<typeof store.turnFinish>,
): Promise<OutputOf<typeof store.turnFinish>> {
  return perform(database, input, {
    name: "finish",
    async run(client) {
      const events = await endTurn(client, input);
      const waiting = await client.query(
        `SELECT FROM parley.inbox i JOIN parley.turns t ON t.session_id = i.session_id WHERE t.id = $1 AND i.state = 'queued' LIMIT 1`,
        [input.turnId],
      );
      const result = { events, queued: waiting.rowCount === 1 };
      return { result, memo: result };
    },
    replay: async (_client, memo) => memo as { events: DurableEvent[]; queued: boolean },
  });
}

/** Gives open calls a result, keeps what was shown of a cut answer, ends the turn, queues what is said about it. */
export async function endTurn(client: PoolClient, ending: Ending): Promise<DurableEvent[]> {
  const found = await client.query<{ session_id: string; state: string; epoch: number }>(
    // The turn, then (by the first number taken) the session: the same order as a commit.
    "SELECT session_id, state, epoch FROM parley.turns WHERE id = $1 FOR UPDATE",
    [ending.turnId],
  );
  const turn = found.rows[0];
  if (turn === undefined) throw new WireError("NOT_FOUND", `no turn ${ending.turnId}`);
  if (turn.state !== "running") throw new WireError("CONFLICT", `turn ${ending.turnId} is ${turn.state}`);
  if (ending.epoch !== null && turn.epoch !== ending.epoch) {
    throw new WireError("CONFLICT", `turn ${ending.turnId} was claimed by epoch ${turn.epoch}`);
  }

  const log = new SessionLog(client, turn.session_id, ending.turnId);
  const results = await settleOpenCalls(client, ending);
  if (results.length > 0) {
    const message = await log.append("tool", results, null);
    await client.query(
      "UPDATE parley.steps SET message_seq = $2 WHERE turn_id = $1 AND kind = 'tool' AND message_seq IS NULL",
      [ending.turnId, message.seq],
    );
  }
  if (textOf(ending.parts) !== "") await log.append("assistant", ending.parts, ending.model);
  return [...log.events, await log.finish(ending.finish, ending.outgoing)];
}

async function settleOpenCalls(client: PoolClient, ending: Ending): Promise<ToolResult[]> {
  const { rows } = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND kind = 'tool' AND message_seq IS NULL ORDER BY n FOR UPDATE`,
    [ending.turnId],
  );
  const results: ToolResult[] = [];
  for (const step of rows.map(toolStepOf)) {
    const result = step.result ?? {
      type: "tool_result",
      id: step.callId,
      name: step.tool,
      content: ending.unsettled,
      isError: true,
    };
    if (step.result === null) {
      // What was started and not seen to end may have happened.
      const state = step.state === "running" && step.class === "once" ? "unknown" : "cancelled";
      await client.query(
        "UPDATE parley.steps SET state = $3, result = $4, finished_at = now() WHERE turn_id = $1 AND n = $2",
        [ending.turnId, step.n, state, JSON.stringify(result)],
      );
    }
    results.push(result);
  }
  return results;
}

/** Appends to a session's log within a transaction. */
class SessionLog {
  readonly events: DurableEvent[] = [];
  readonly #client: PoolClient;
  readonly #sessionId: string;
  readonly #turnId: string;

  constructor(client: PoolClient, sessionId: string, turnId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#turnId = turnId;
  }

  async append(role: Message["role"], parts: Part[], model: string | null): Promise<Message> {
    const seq = await this.#next(1);
    const { rows } = await this.#client.query<{ created_at: string }>(
      `INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model) VALUES ($1, $2, $3, $4, $5, $6) RETURNING created_at`,
      [this.#sessionId, seq, this.#turnId, role, JSON.stringify(parts), model],
    );
    const message: Message = { seq, role, turnId: this.#turnId, parts, model, createdAt: only(rows).created_at };
    this.events.push({ type: "message", seq, message });
    return message;
  }

  async finish(end: Finish, outgoing: Outgoing[]): Promise<DurableEvent> {
    const seq = await this.#next(0);
    const { rows } = await this.#client.query<TurnRow>(
      `UPDATE parley.turns SET state = $2, exit_reason = $3, answer = $4, finished_at = now() WHERE id = $1 RETURNING ${turnColumns}`,
      [this.#turnId, end.state, end.exitReason, JSON.stringify(end.text)],
    );
    await this.#client.query(
      "INSERT INTO parley.events (session_id, seq, type, turn_id) VALUES ($1, $2, 'turn.finished', $3)",
      [this.#sessionId, seq, this.#turnId],
    );
    await this.#client.query(
      "UPDATE parley.inbox SET state = $2 WHERE id = (SELECT inbox_id FROM parley.turns WHERE id = $1)",
      [this.#turnId, end.state === "dead" || end.state === "cancelled" ? end.state : "done"],
    );
    for (const text of outgoing) await queueText(this.#client, this.#turnId, text);
    return finishedEvent(seq, turnOf(only(rows)));
  }

  async #next(messages: number): Promise<number> {
    const { rows } = await this.#client.query<{ seq: number }>(
      "UPDATE parley.sessions SET seq = seq + 1, message_count = message_count + $2, updated_at = now() WHERE id = $1 RETURNING seq",
      [this.#sessionId, messages],
    );
    return only(rows).seq;
  }
}
