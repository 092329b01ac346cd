// The types of a slash command and its errors. Every channel, the HTTP and WebSocket API and the CLI share one registry (registry.ts);
// `access.ts` decides who may use a command.
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
import type { SessionService } from "./session-service.ts";
import type { SessionDirectory } from "../live/session-directory.ts";

/** The sender of a command, and its conversation. */
export interface Speaker {
  /** Resolves to the session that the command applies to. */
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
}

export interface CommandDeps {
  bus: Bus;
  sessions: SessionDirectory;
  settings: ParleySettings;
  acts: SessionService;
  cancel(what: InputOf<typeof store.turnCancel>): Promise<OutputOf<typeof store.turnCancel>>;
  /** Sends a message to the agent on behalf of the command's sender, once per `externalId`. Throws Refusal. */
  say(message: InboundMessage, route: string): Promise<void>;
  /** Invalidates live views after a change that publishes no event. */
  look(): void;
}

export interface Invocation {
  deps: CommandDeps;
  speaker: Speaker;
  /** The text after the command's name. */
  argumentText: string;
  /** `rest`, split at white space. */
  words: readonly string[];
}

export interface Command {
  /** In lower case, including the slash. */
  name: string;
  /** The syntax, shown by /help and after a usage error. */
  usage: string;
  /** One line for /help. */
  summary: string;
  /** Does not end a coalescing window, because the command is about the queued messages. */
  keepsWindow?: boolean;
  /** Returns the text of the answer. Throws `Refusal` when the command cannot be executed. */
  run(invocation: Invocation): Promise<string> | string;
}

/** Thrown when a command cannot be executed; the sender receives the message. */
export class CommandError extends Error {
  override readonly name = "Refusal";
}

/** Thrown when a command has invalid arguments; the sender receives the message and the usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Throws Refusal unless the sender is an owner. */
export function onlyOwners({ role }: Speaker, what: string): void {
  if (role !== "owner") throw new CommandError(`${what} is for the owner only.`);
}

/** Returns the session of the speaker's route. Throws Refusal when the conversation has no session yet. */
export async function currentSession({ deps, speaker }: Invocation): Promise<SessionSummary> {
  const session = await deps.sessions.find(speaker.route);
  if (session === null) throw new CommandError("This conversation has no messages yet.");
  return session;
}

/** Names a person in logs and in records of decisions. */
export function nameOf({ channel, account, contact }: Speaker): string {
  const place = account === "default" ? channel : `${channel}:${account}`;
  return contact.name === undefined ? `${contact.id} (${place})` : `${contact.name} (${place} ${contact.id})`;
}
