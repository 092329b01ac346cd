// Appends messages and durable events to a session's log within a transaction, with one sequence counter.
import { textOf, type DurableEvent, type Finish, type Message, type Outgoing, type Part } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import {
  finishedEvent,
  messageColumns,
  messageOf,
  turnColumns,
  turnOf,
  type MessageRow,
  type TurnRow,
} from "../../db/mappers.ts";
import { singleRow } from "../../db/operation.ts";
import { enqueueText } from "../outbox/enqueue.ts";

export class SessionLog {
  readonly events: DurableEvent[] = [];
  readonly #client: PoolClient;
  readonly #sessionId: string;
  readonly #turnId: string;

  constructor(client: PoolClient, sessionId: string, turnId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#turnId = turnId;
  }

  /** `sender`: JSON; omitted for messages of the loop. `tainted`: the leader's mark of the turn. */
  async append(
    role: Message["role"],
    parts: Part[],
    model: string | null,
    {
      sender = null,
      tainted = false,
      sentAt = null,
    }: { sender?: string | null; tainted?: boolean | undefined; sentAt?: string | null } = {},
  ): Promise<Message> {
    const seq = await this.next(1);
    const { rows } = await this.#client.query<MessageRow>(
      `INSERT INTO parley.messages (session_id, seq, turn_id, role, parts, model, sender, tainted, sent_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ${messageColumns}`,
      [this.#sessionId, seq, this.#turnId, role, JSON.stringify(parts), model, sender, tainted ? true : null, sentAt],
    );
    const message = messageOf(singleRow(rows));
    this.events.push({ type: "message", seq, message });
    return message;
  }

  /** Appends the streamed part of an aborted answer, unless it has no text. */
  async appendShown(parts: Part[], model: string | null, tainted?: boolean): Promise<void> {
    if (textOf(parts) !== "") await this.append("assistant", parts, model, { tainted });
  }

  /** Appends a durable event; `body` contains its fields except the turn. */
  async event(type: Exclude<DurableEvent["type"], "message" | "turn.finished">, body: object): Promise<number> {
    const seq = await this.next(0);
    await this.#client.query(
      "INSERT INTO parley.events (session_id, seq, type, turn_id, body) VALUES ($1, $2, $3, $4, $5)",
      [this.#sessionId, seq, type, this.#turnId, JSON.stringify(body)],
    );
    return seq;
  }

  async finish(end: Finish, outgoing: Outgoing[]): Promise<DurableEvent> {
    const seq = await this.next(0);
    const { rows } = await this.#client.query<TurnRow>(
      `UPDATE parley.turns SET state = $2, exit_reason = $3, answer = $4, finished_at = now(), parked = false, wake_at = NULL
       WHERE id = $1 RETURNING ${turnColumns}`,
      [this.#turnId, end.state, end.exitReason, JSON.stringify(end.text)],
    );
    await this.#client.query(
      "INSERT INTO parley.events (session_id, seq, type, turn_id) VALUES ($1, $2, 'turn.finished', $3)",
      [this.#sessionId, seq, this.#turnId],
    );
    await this.#client.query("UPDATE parley.inbox SET state = $2 WHERE turn_id = $1", [
      this.#turnId,
      end.state === "dead" || end.state === "cancelled" ? end.state : "done",
    ]);
    for (const text of outgoing) await enqueueText(this.#client, this.#turnId, text);
    return finishedEvent(seq, turnOf(singleRow(rows)));
  }

  async next(messages: number): Promise<number> {
    const { rows } = await this.#client.query<{ seq: number }>(
      "UPDATE parley.sessions SET seq = seq + 1, message_count = message_count + $2, updated_at = now() WHERE id = $1 RETURNING seq",
      [this.#sessionId, messages],
    );
    return singleRow(rows).seq;
  }
}
