// The gateway's API for sessions, queues, approvals, cost and checkpoints: paths and schemas. Unknown fields are ignored.

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

/** Timeout for a compaction (a model call with retries) and a rewind (file by file). */
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

/** Drops undefined values. */
function given<T extends Record<string, unknown>>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function query(values: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const entries = Object.entries(given(values)).map(([name, value]): [string, string] => [name, String(value)]);
  return new URLSearchParams(entries).toString();
}

/** Each throws CliError: GatewayUnreachableError, or Refused with the gateway's reason. */
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

  /** Starts a new session for a route; the previous one is kept. */
  open(route: string, title: string | undefined) {
    return this.#gateway.post("/api/sessions", { action: "new", route, ...given({ title }) }, SessionAnswer);
  }

  /** Connects a route to an existing session. */
  resume(session: string, route: string) {
    return this.#gateway.post("/api/sessions", { action: "resume", session, route }, SessionAnswer);
  }

  /** `route`, if given, leads to the copy from then on. */
  fork(session: string, title: string | undefined, route: string | undefined) {
    return this.#gateway.post("/api/sessions", { action: "fork", session, ...given({ title, route }) }, SessionAnswer);
  }

  /** A null override removes it. */
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

  /** Cancels a queued message. Refused (409) when it is no longer queued. */
  async unqueue(id: string): Promise<void> {
    await this.#gateway.change("DELETE", await this.#queued(id), undefined, Anything);
  }

  /** Replaces the text of a queued message. Refused (409) when it is no longer queued. */
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

  /** The path of a queued message; fetches its session first. */
  async #queued(id: string): Promise<string> {
    const { sessionId } = await this.#gateway.get(`/api/messages/${encodeURIComponent(id)}`, MessageStateAnswer);
    return of(sessionId, `/queue/${encodeURIComponent(id)}`);
  }
}
