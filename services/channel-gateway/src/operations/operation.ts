// What an operation is in this service: its definition from the contracts with its implementation, and who may call it from where.
import type { Bus } from "@parley/bus";
import {
  scopeOf,
  type ApiScope,
  type ContactRole,
  type InboundMessage,
  type InputOf,
  type OperationDefinition,
  type OperationInput,
  type operations,
  type OutputOf,
  type ParleySettings,
  type PeoplePolicy,
  type ReplyAddress,
  type SessionSummary,
  type store,
} from "@parley/contracts";
import type { z } from "zod";
import { nameUuid } from "@parley/kit";
import type { SessionService } from "./session-service.ts";
import type { SessionDirectory } from "../live/session-directory.ts";

/** Who calls the API: the holder of a token. */
export interface ApiAccess {
  /** Names them in records: `owner`, or `token <name>`. */
  name: string;
  scopes: readonly ApiScope[];
}

/** The sender of a command, and its conversation. */
export interface Speaker {
  /** Resolves to the session that the command applies to; empty for a caller that names its session. */
  route: string;
  role: ContactRole;
  channel: string;
  account: string;
  conversation: string;
  contact: { id: string; name?: string | undefined };
  /** Where later messages are sent; null: the client reads them from the session. */
  replyTo: ReplyAddress | null;
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
  /** Identifies the message that contains the command; a redelivery has the same value and is the same operation. */
  ref: string;
  /** Set for callers of the API, whose rights are narrower than their role; undefined: a person on a channel. */
  access?: ApiAccess;
  /** The caller's idempotency key: it identifies operations on one target, however the request names the target. */
  key?: string;
}

export interface AccountRef {
  channel: string;
  account: string;
}

/** An account to add; `channels.add` describes the fields. */
export type NewAccount = OperationInput<typeof operations.channelsAdd>;

/** The accounts of channels. */
export interface ChannelDirectory {
  /** All accounts, also those that are disabled. */
  list(): (AccountRef & { origin: "file" | "added" })[];
  /** Who may write through an account; null: it is unknown or disabled. */
  peopleOf(account: AccountRef): PeoplePolicy | null;
  /** Throws OperationError when no adapter serves an account: a text for it would wait until it expires. */
  require(account: AccountRef): void;
  /** The account has connections of its own, each held by one gateway. */
  hasConnection(account: AccountRef): boolean;
  /** The account's own name on its platform; null: there is no check, or none without its connection. Rejects with a readable reason. */
  check(account: AccountRef, signal: AbortSignal): Promise<{ as: string } | null>;
  /** Adds or replaces an account on all replicas; on this one it runs when the promise resolves. Throws OperationError. */
  add(account: NewAccount, by: string): Promise<{ as: string | null; replaced: boolean }>;
  /** Removes an added account from all replicas. Throws OperationError. */
  remove(account: AccountRef, by: string): Promise<void>;
}

export interface OperationDeps {
  bus: Bus;
  sessions: SessionDirectory;
  settings: ParleySettings;
  /** The source of the setting at a path: a flag, a variable, the file, `preset <name>` or `default`. */
  originOf: (path: readonly string[]) => string;
  /** Problems of the settings as they are stored now, which may differ from those in effect. */
  checkSettings: () => string[];
  acts: SessionService;
  cancel(what: InputOf<typeof store.turnCancel>): Promise<OutputOf<typeof store.turnCancel>>;
  /** Sends a message to the agent on behalf of the command's sender, once per `externalId`. Throws OperationError. */
  say(message: InboundMessage, route: string): Promise<void>;
  channels: ChannelDirectory;
  /** Invalidates live views after a change that publishes no event. */
  look(): void;
}

/** One call of an operation. */
export class OperationCall {
  readonly deps: OperationDeps;
  readonly speaker: Speaker;
  /** Names the caller in records of decisions. */
  readonly actor: string;

  constructor(deps: OperationDeps, speaker: Speaker, by: string) {
    this.deps = deps;
    this.speaker = speaker;
    this.actor = by;
  }

  /** Returns the session with this id or key. Throws OperationError when there is none. */
  async session(idOrKey: string): Promise<SessionSummary> {
    const session = await this.deps.sessions.find(idOrKey);
    if (session !== null) return session;
    if (idOrKey === this.speaker.route) throw new OperationError("not_found", "this conversation has no messages yet");
    throw new OperationError("not_found", `there is no session "${idOrKey}"`);
  }

  /** Like `session`; creates the session of the speaker's own conversation when there is none. */
  async ensureSession(idOrKey: string): Promise<SessionSummary> {
    const { route, ref } = this.speaker;
    return idOrKey === route ? this.deps.acts.ensure(route, ref) : this.session(idOrKey);
  }

  /** The id of a store operation. `what` names the operation and its target by id; a repeated call has the same id. */
  operationId(what: string): string {
    const { key, ref } = this.speaker;
    return nameUuid(`${what}:${key ?? ref}`);
  }

  /** Like `operationId`, for an operation whose target only the request names: a key belongs to its path. */
  requestId(what: string): string {
    return nameUuid(`${what}:${this.speaker.ref}`);
  }
}

/** A definition with its implementation; `implement` has checked the types. */
export interface Operation {
  definition: OperationDefinition;
  /** What a token of the API needs for it. */
  scope: ApiScope;
  run(input: unknown, call: OperationCall): Promise<unknown>;
  text(output: unknown, call: OperationCall, input: unknown): Promise<string> | string;
}

/** Implements a definition. `text` is the answer of its slash commands; it may use fields of the output that programs do not get. */
export function implement<I extends z.ZodType, O extends z.ZodType, R extends z.input<O>>(
  definition: OperationDefinition<I, O>,
  run: (input: z.output<I>, call: OperationCall) => Promise<R> | R,
  text: (output: R, call: OperationCall, input: z.output<I>) => Promise<string> | string = String,
): Operation {
  return {
    definition,
    scope: scopeOf(definition),
    run: async (input, call) => run(input as z.output<I>, call),
    text: (output, call, input) => text(output as R, call, input as z.output<I>),
  };
}

const statuses = {
  invalid_request: 400,
  forbidden: 403,
  not_found: 404,
  no_such_account: 404,
  conflict: 409,
  expired: 409,
  ambiguous: 409,
  not_waiting: 409,
  account_rejected: 422,
  account_disabled: 503,
} as const;

/** Thrown when an operation cannot be executed; the caller receives the message. */
export class OperationError extends Error {
  override readonly name = "OperationError";
  /** For programs. */
  readonly code: keyof typeof statuses;
  /** The HTTP status. */
  readonly status: number;

  constructor(code: keyof typeof statuses, message: string) {
    super(message);
    this.code = code;
    this.status = statuses[code];
  }
}

/** Thrown when the input of an operation does not match its schema. */
export class InvalidInputError extends Error {
  override readonly name = "InvalidInputError";
  readonly issues: z.core.$ZodError;

  constructor(issues: z.core.$ZodError) {
    super(issues.message);
    this.issues = issues;
  }
}

/** Thrown when a command has invalid arguments; the sender receives the message and the usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Names a person in logs and in records of decisions. */
export function nameOf({ channel, account, contact, access }: Speaker): string {
  if (access !== undefined && access.name !== "owner") return access.name;
  const place = account === "default" ? channel : `${channel}:${account}`;
  return contact.name === undefined ? `${contact.id} (${place})` : `${contact.name} (${place} ${contact.id})`;
}

/** Roles by their rights. */
export const roleRanks: Readonly<Record<ContactRole, number>> = { guest: 0, user: 1, owner: 2 };

/** Whether `role` includes the rights of `minimum`. */
export function hasRole(role: ContactRole, minimum: ContactRole): boolean {
  return roleRanks[role] >= roleRanks[minimum];
}
