// What the Signal fake has: the account, the people and groups it knows, what was sent to them, and what waits on Signal's servers.
import { PeerState } from "../peer-state.ts";

/** A person with an account of Signal. */
export interface Person {
  uuid: string;
  number: string;
  name: string;
  /** The account was deleted: sends to it fail. */
  unregistered?: boolean;
}

export interface Group {
  id: string;
  name: string;
  /** Account ids; the account of the daemon is a member too. */
  members: string[];
  /** Why the account cannot send to it: only administrators may, or it is a member no more. */
  refusal?: "announcements" | "left";
}

export interface SentFile {
  name: string | null;
  mediaType: string;
  content: Buffer;
}

/** A message of the account as people see it. */
export interface SentMessage {
  /** An account id, or `group:<id>`. */
  to: string;
  text: string;
  /** The styled parts of the text, in order. */
  styles: { style: string; text: string }[];
  files: SentFile[];
  quote: { timestamp: number; author: string } | null;
  timestamp: number;
  /** How often it was edited; clients ignore more than ten edits. */
  edits: number;
  deleted: boolean;
}

/** `kind` says what happens to the next call: an error of the daemon, or of the connection. */
export type Fault =
  | { kind: "rate_limit"; retryAfterSeconds?: number }
  | { kind: "network_failure" | "untrusted" | "internal_error" }
  /** An IO error before anything was sent, such as `(UnknownHostException)`. */
  | { kind: "io_error"; message: string }
  | { kind: "status"; status: number }
  | { kind: "reset_before_commit" | "reset_after_commit" | "hang_after_commit" };

export interface RpcCall {
  method: string;
  params: Readonly<Record<string, unknown>>;
}

export const maxEdits = 10;

export class SignalState extends PeerState<Fault> {
  readonly number: string;
  readonly people = new Map<string, Person>();
  readonly groups = new Map<string, Group>();
  readonly sent: SentMessage[] = [];
  readonly typing: { to: string; stop: boolean }[] = [];
  readonly reactions: { to: string; emoji: string; timestamp: number; author: string; remove: boolean }[] = [];
  readonly attachments = new Map<string, Buffer>();
  readonly calls: RpcCall[] = [];
  /** Envelopes that the daemon has not fetched from Signal's servers. */
  readonly waiting: unknown[] = [];
  #lastTimestamp = 0;

  constructor(number: string) {
    super("Signal");
    this.number = number;
  }

  /** A new message's timestamp, in milliseconds; no two are equal. */
  nextTimestamp(): number {
    this.#lastTimestamp = Math.max(Date.now(), this.#lastTimestamp + 1);
    return this.#lastTimestamp;
  }
}
