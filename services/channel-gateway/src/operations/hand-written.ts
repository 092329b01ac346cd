// Commands that do not have a definition yet.
import type { SessionSummary } from "@parley/contracts";
import type { OperationDeps, Speaker } from "./operation.ts";

export interface Invocation {
  deps: OperationDeps;
  speaker: Speaker;
  /** The text after the command's name. */
  argumentText: string;
  /** `rest`, split at white space. */
  words: readonly string[];
}

export interface Command {
  /** In lower case, including the slash. */
  name: string;
  usage?: string;
  summary?: string;
  keepsWindow?: boolean;
  /** Returns the text of the answer. Throws `CommandError` when the command cannot be executed. */
  run(invocation: Invocation): Promise<string> | string;
}

/** Thrown when a command cannot be executed; the sender receives the message. */
export class CommandError extends Error {
  override readonly name = "Refusal";
}

/** Throws CommandError unless the sender is an owner. */
export function onlyOwners({ role }: Speaker, what: string): void {
  if (role !== "owner") throw new CommandError(`${what} is for the owner only.`);
}

/** Returns the session of the speaker's route. Throws CommandError when the conversation has no session yet. */
export async function currentSession({ deps, speaker }: Invocation): Promise<SessionSummary> {
  const session = await deps.sessions.find(speaker.route);
  if (session === null) throw new CommandError("This conversation has no messages yet.");
  return session;
}
