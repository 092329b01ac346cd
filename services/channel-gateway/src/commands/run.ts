// Every command there is, and carrying one out: who may, what it answers, and what is said when it cannot be done.
import { nearest, store, WireError } from "@parley/contracts";
import { accessRefusal } from "./access.ts";
import { aboutCommands } from "./about.ts";
import { approvalCommands } from "./approvals.ts";
import { checkpointCommands } from "./checkpoints.ts";
import { Refusal, UsageError, type Command, type CommandDeps, type Speaker } from "./command.ts";
import { NobodyThere } from "../session-acts.ts";
import { contextCommands } from "./context.ts";
import { mcpCommands, promptCommand } from "./mcp.ts";
import { modelCommands } from "./models.ts";
import { queueCommands } from "./queue.ts";
import { sessionCommands } from "./sessions.ts";
import type { CommandLine } from "./spoken.ts";
import { stopCommands } from "./stop.ts";
import { todoCommands } from "./todos.ts";
import { voiceCommands } from "./voice.ts";

/** In the order of /help. */
export const commands: readonly Command[] = [
  ...aboutCommands(() => commands),
  ...stopCommands,
  ...sessionCommands,
  ...queueCommands,
  ...approvalCommands,
  ...modelCommands,
  ...contextCommands,
  ...todoCommands,
  ...checkpointCommands,
  ...mcpCommands,
  ...voiceCommands,
];

/** Carries a command out and words the answer. Rejects when the store is away: then it may be given again. */
export async function carryOut(deps: CommandDeps, { name, rest }: CommandLine, speaker: Speaker): Promise<string> {
  const command = commands.find((each) => each.name === name) ?? promptCommand(name);
  if (command === undefined) return unknownText(name);
  const words = rest === "" ? [] : rest.split(/\s+/);
  const refused = accessRefusal(name, words, speaker);
  if (refused !== undefined) return refused;
  // In a group the window holds messages of other people, too: a guest does not end it for them.
  const mayFlush = speaker.direct || speaker.role !== "guest";
  if (command.keepsWindow !== true && mayFlush) await flushWindow(deps, speaker.route);
  try {
    return await command.run({ deps, speaker, rest, words });
  } catch (error) {
    if (error instanceof UsageError) return `${error.message}\nUsage: ${command.usage}`;
    if (error instanceof Refusal) return error.message;
    const said = whatFailed(error);
    if (said === undefined) throw error;
    return said;
  }
}

function unknownText(name: string): string {
  const near = nearest(
    name.slice(1),
    commands.map((each) => each.name.slice(1)),
  );
  const hint = near === null ? "" : ` Did you mean /${near}?`;
  return `There is no command ${name}; nothing was sent to the agent.${hint} /help lists the commands, /stop stops what is being done. To say something that begins with a slash, put a space before it.`;
}

/** A command shows that its sender is done talking: what waits for more of theirs waits no longer. */
async function flushWindow({ bus, sessions, settings }: CommandDeps, route: string): Promise<void> {
  const mode = (await sessions.queueModeOf(route)) ?? settings.queue.mode;
  if (mode !== "coalesce") return;
  const session = await sessions.find(route);
  if (session !== null) await bus.request(store.inboxFlush, { sessionId: session.sessionId });
}

/** What the sender is told; undefined: it is worth another try by whoever brought it. */
function whatFailed(error: unknown): string | undefined {
  if (!(error instanceof NobodyThere) && !WireError.is(error, "INVALID_INPUT", "NOT_FOUND", "CONFLICT", "TOO_LARGE")) {
    return undefined;
  }
  return `That cannot be done: ${error.message}.`;
}
