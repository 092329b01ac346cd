// What the gateway's API says and does about sessions, their queues, questions to people, money and checkpoints: paths and shapes in one
// place. Unknown fields are left alone.

import { checkpointRewind, controlCompact, store } from "@parley/contracts";
import { z } from "zod";

import type { Gateway } from "../cluster/gateway.ts";
import { MessageStateAnswer, SessionAnswer, SessionsAnswer } from "../cluster/shapes.ts";

const QueueAnswer = store.inboxList.output;
const ApprovalsAnswer = store.approvalList.output;
const DecidedAnswer = store.approvalDecide.output;
const UsageAnswer = store.usageReport.output;
const CheckpointsAnswer = store.checkpointList.output;
const CompactAnswer = controlCompact.output;
const Anything = z.unknown();

/** A summary is a model call with its retries; a rewind puts files back one by one. */
const longMs = 300_000;

export type QueueRow = z.infer<typeof QueueAnswer>["rows"][number];
export type ApprovalRow = z.infer<typeof ApprovalsAnswer>["approvals"][number];
export type UsageRow = z.infer<typeof UsageAnswer>["rows"][number];
export type CheckpointRow = z.infer<typeof CheckpointsAnswer>["checkpoints"][number];
export type Compacted = z.infer<typeof CompactAnswer>;

export interface SessionFilter {
  readonly status?: "active" | "archived";
  readonly subagents?: boolean;
  readonly calls?: boolean;
  readonly text?: string;
}

function of(session: string, verb = ""): string {
  return `/api/sessions/${encodeURIComponent(session)}${verb}`;
}

/** Leaves out what was not given. */
function given<T extends Record<string, unknown>>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function query(values: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const entries = Object.entries(given(values)).map(([name, value]): [string, string] => [name, String(value)]);
  return new URLSearchParams(entries).toString();
}

/** Each throws CliError: NoGateway, or Refused with the gateway's reason. */
export class ControlApi {
  readonly #gateway: Gateway;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  sessions(filter: SessionFilter) {
    return this.#gateway.get(`/api/sessions?${query({ limit: 200, ...filter })}`, SessionsAnswer);
  }

  session(session: string) {
    return this.#gateway.get(of(session), SessionAnswer);
  }

  /** A new session for a route; the one before is kept. */
  open(route: string, title: string | undefined) {
    return this.#gateway.post("/api/sessions", { action: "new", route, ...given({ title }) }, SessionAnswer);
  }

  /** Leads a route to a session that is there. */
  resume(session: string, route: string) {
    return this.#gateway.post("/api/sessions", { action: "resume", session, route }, SessionAnswer);
  }

  /** `route`: leads to the copy from then on; left out: none does. */
  fork(session: string, title: string | undefined, route: string | undefined) {
    return this.#gateway.post("/api/sessions", { action: "fork", session, ...given({ title, route }) }, SessionAnswer);
  }

  /** Overrides: null takes one back. */
  update(
    session: string,
    change: {
      title?: string;
      status?: "active" | "archived";
      overrides?: Readonly<Record<string, string | null>>;
    },
  ) {
    return this.#gateway.change("PATCH", of(session), change, SessionAnswer);
  }

  compact(session: string, instructions: string | undefined) {
    return this.#gateway.change("POST", of(session, "/compact"), given({ instructions }), CompactAnswer, longMs);
  }

  queue(session: string) {
    return this.#gateway.get(of(session, "/queue"), QueueAnswer);
  }

  /** Takes a message that waits back. Refused (409) when it does not wait any more. */
  async unqueue(id: string): Promise<void> {
    await this.#gateway.change("DELETE", await this.#queued(id), undefined, Anything);
  }

  /** Gives a message that waits another text. Refused (409) when it does not wait any more. */
  async reword(id: string, text: string): Promise<void> {
    await this.#gateway.change("PATCH", await this.#queued(id), { text }, Anything);
  }

  approvals(filter: { state: "pending" | "all"; session: string | undefined }) {
    return this.#gateway.get(`/api/approvals?${query({ limit: 100, ...filter })}`, ApprovalsAnswer);
  }

  decide(id: string, allow: boolean, always: boolean) {
    const decision = { decision: allow ? "allow" : "deny", ...(always ? { always } : {}) };
    return this.#gateway.post(`/api/approvals/${encodeURIComponent(id)}`, decision, DecidedAnswer);
  }

  usage(filter: { days: number; session: string | undefined }) {
    return this.#gateway.get(`/api/usage?${query(filter)}`, UsageAnswer);
  }

  checkpoints(session: string) {
    return this.#gateway.get(of(session, "/checkpoints?limit=200"), CheckpointsAnswer);
  }

  rewind(session: string, checkpointId: string, dryRun: boolean) {
    const body = { checkpointId, dryRun };
    return this.#gateway.change("POST", of(session, "/rewind"), body, checkpointRewind.output, longMs);
  }

  /** Where a message that waits is changed: its session is asked for. */
  async #queued(id: string): Promise<string> {
    const { sessionId } = await this.#gateway.get(`/api/messages/${encodeURIComponent(id)}`, MessageStateAnswer);
    return of(sessionId, `/queue/${encodeURIComponent(id)}`);
  }
}
