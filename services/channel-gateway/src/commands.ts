// Commands that are carried out by the gateway at once and never reach the model. This file reads them and words the
// answers; `inbound.ts` carries them out.
import type { SessionSummary } from "@parley/contracts";

const commandList = {
  "/stop": "stop what is being done and take back what waits",
  "/status": "how this conversation stands",
  "/help": "this list",
} as const;
type CommandName = keyof typeof commandList;

export type Command = { kind: "known"; name: CommandName } | { kind: "unknown"; name: string };

/** `/name`, perhaps addressed (`/name@bot`) and with arguments. A path such as `/etc/hosts` is no command. */
const commandPattern = /^(\/[A-Za-z][A-Za-z0-9_-]*)(?:@\S+)?(?:\s|$)/;

/** The command a text is, or null where it is meant for the model. */
export function readCommand(text: string): Command | null {
  const name = commandPattern.exec(text)?.[1]?.toLowerCase();
  if (name === undefined) return null;
  return Object.hasOwn(commandList, name) ? { kind: "known", name: name as CommandName } : { kind: "unknown", name };
}

export function helpText(): string {
  const lines = Object.entries(commandList).map(([name, what]) => `${name}  ${what}`);
  return `Commands:\n${lines.join("\n")}\nEverything else is said to the agent.`;
}

export function unknownCommandText(name: string): string {
  return `There is no command ${name}; nothing was sent to the agent. ${helpText()}\nTo say something that begins with a slash, put a space before it.`;
}

export function stopText(outcome: { turnId: string | null; cancelledQueued: number } | null): string {
  if (outcome === null || (outcome.turnId === null && outcome.cancelledQueued === 0)) return "Nothing is running.";
  const waiting = outcome.cancelledQueued;
  const taken =
    waiting === 0 ? "" : ` ${waiting} waiting ${waiting === 1 ? "message was" : "messages were"} taken back.`;
  return outcome.turnId === null ? taken.trimStart() : `Stopped.${taken}`;
}

export function statusText(
  session: SessionSummary | null,
  model: { provider: string; model: string } | null,
  version: string,
): string {
  const lines = [
    `Parley ${version}`,
    model === null ? "Model: no agent-core answers right now" : `Model: ${model.model} (${model.provider})`,
  ];
  if (session === null) lines.push("Conversation: nothing was said yet");
  else {
    const state = session.runningTurnId === null ? "idle" : "working";
    lines.push(`Conversation ${session.key}: ${state}, ${session.queued} waiting, ${session.messageCount} messages`);
  }
  return lines.join("\n");
}
