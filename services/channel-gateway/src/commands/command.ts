// What a command is: its name, how it is typed, and what it does; `access.ts` decides who may use it. One registry for every channel, the HTTP and WebSocket API and
// the CLI.
import type { Bus } from "@parley/bus";
import type {
  ContactRole,
  InboundMessage,
  InputOf,
  OutputOf,
  ParleySettings,
  ReplyAddress,
  SessionSummary,
  store,
} from "@parley/contracts";
import type { SessionActs } from "../session-acts.ts";
import type { Sessions } from "../sessions.ts";

/** Who gives a command, and where. */
export interface Speaker {
  /** Leads to the session that is meant. */
  route: string;
  role: ContactRole;
  channel: string;
  account: string;
  conversation: string;
  contact: { id: string; name?: string | undefined };
  /** Where what is said later goes; null: it is read from the session. */
  replyTo: ReplyAddress | null;
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
  /** The message that holds the command: the same again is the same operation. */
  ref: string;
}

export interface CommandDeps {
  bus: Bus;
  sessions: Sessions;
  settings: ParleySettings;
  acts: SessionActs;
  cancel(what: InputOf<typeof store.turnCancel>): Promise<OutputOf<typeof store.turnCancel>>;
  /** Says something to the agent for the one who gave the command; once for each `externalId`. Throws Refusal. */
  say(message: InboundMessage, route: string): Promise<void>;
  /** Something was changed that no event tells of. */
  look(): void;
}

export interface Invocation {
  deps: CommandDeps;
  speaker: Speaker;
  /** Behind the command's name. */
  rest: string;
  /** `rest` in words. */
  words: readonly string[];
}

export interface Command {
  /** With its slash, in lower case. */
  name: string;
  /** How it is typed. */
  usage: string;
  /** One line for /help. */
  summary: string;
  /** Leaves what waits in a coalescing window there, because it is about what waits. */
  keepsWindow?: boolean;
  /** Answers in words; throws `Refusal` for what cannot be done. */
  run(invocation: Invocation): Promise<string> | string;
}

/** Thrown when a command cannot be carried out; the message is the answer. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Thrown when a command was typed in a way that means nothing; it is answered with how to type it. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Throws Refusal unless an owner speaks. */
export function onlyOwners({ role }: Speaker, what: string): void {
  if (role !== "owner") throw new Refusal(`${what} is for the owner only.`);
}

/** The session that the speaker's route leads to. Throws Refusal where nothing was said yet. */
export async function currentSession({ deps, speaker }: Invocation): Promise<SessionSummary> {
  const session = await deps.sessions.find(speaker.route);
  if (session === null) throw new Refusal("Nothing was said in this conversation yet.");
  return session;
}

/** Who it was, for the log and for those who ask later. */
export function nameOf({ channel, account, contact }: Speaker): string {
  const place = account === "default" ? channel : `${channel}:${account}`;
  return contact.name === undefined ? `${contact.id} (${place})` : `${contact.name} (${place} ${contact.id})`;
}
