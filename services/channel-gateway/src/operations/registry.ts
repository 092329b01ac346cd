// The registry of all commands, and their execution: access check, answer, and the text for errors.
import { nearestName, store, WireError } from "@parley/contracts";
import { accessRefusal } from "./access.ts";
import { aboutCommands } from "./help.ts";
import { approvalCommands } from "./approvals.ts";
import { checkpointCommands } from "./checkpoints.ts";
import { CommandError, UsageError, type Command, type CommandDeps, type Speaker } from "./operation.ts";
import { ServiceUnavailableError } from "./session-service.ts";
import { contextCommands } from "./context.ts";
import { mcpCommands, promptCommand } from "./mcp.ts";
import { modelCommands } from "./models.ts";
import { queueCommands } from "./queue.ts";
import { sessionCommands } from "./sessions.ts";
import type { CommandLine } from "./parse-input.ts";
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

/** Executes a command and returns the answer. Rejects when the store is unavailable; the same command may then be repeated. */
export async function runOperation(deps: CommandDeps, { name, rest }: CommandLine, speaker: Speaker): Promise<string> {
  const command = commands.find((each) => each.name === name) ?? promptCommand(name);
  if (command === undefined) return unknownText(name);
  const words = rest === "" ? [] : rest.split(/\s+/);
  const refused = accessRefusal(name, words, speaker);
  if (refused !== undefined) return refused;
  // In a group the window also holds messages of other people, so a guest does not end it.
  const mayFlush = speaker.direct || speaker.role !== "guest";
  if (command.keepsWindow !== true && mayFlush) await flushWindow(deps, speaker.route);
  try {
    return await command.run({ deps, speaker, argumentText: rest, words });
  } catch (error) {
    if (error instanceof UsageError) return `${error.message}\nUsage: ${command.usage}`;
    if (error instanceof CommandError) return error.message;
    const said = whatFailed(error);
    if (said === undefined) throw error;
    return said;
  }
}

function unknownText(name: string): string {
  const near = nearestName(
    name.slice(1),
    commands.map((each) => each.name.slice(1)),
  );
  const hint = near === null ? "" : ` Did you mean /${near}?`;
  return `Unknown command ${name}; nothing was sent to the agent.${hint} /help lists the commands, /stop stops the running turn. To send text that begins with a slash, put a space before it.`;
}

/** A command shows that its sender has finished writing, so the coalescing window ends. */
async function flushWindow({ bus, sessions, settings }: CommandDeps, route: string): Promise<void> {
  const mode = (await sessions.queueModeOf(route)) ?? settings.queue.mode;
  if (mode !== "coalesce") return;
  const session = await sessions.find(route);
  if (session !== null) await bus.request(store.inboxFlush, { sessionId: session.sessionId });
}

/** Returns the text for the sender, or undefined when the error is transient and the caller should retry. */
function whatFailed(error: unknown): string | undefined {
  if (
    !(error instanceof ServiceUnavailableError) &&
    !WireError.is(error, "INVALID_INPUT", "NOT_FOUND", "CONFLICT", "TOO_LARGE")
  ) {
    return undefined;
  }
  return `Command failed: ${error.message}.`;
}
