// All commands, and running one by its command line.

import { asTyped } from "../io/command-name.ts";
import { CliError, exitCodes, note, painter, type Io } from "../io/io.ts";
import type { CommandSpec } from "./command.ts";
import { channelCommands } from "./channels.ts";
import { backupCommand, restoreCommand } from "./backup.ts";
import { completionCommand } from "./completion.ts";
import { configCommands } from "./config.ts";
import { consoleCommand } from "./console.ts";
import { cronCommands } from "./cron.ts";
import { deadLetterCommands } from "./dead-letters.ts";
import { docsCommands } from "./docs.ts";
import { doctorCommand, downCommand, logsCommand, statusCommand, upCommand } from "./local.ts";
import { evalCommands } from "./eval.ts";
import { mcpCommands } from "./mcp.ts";
import { onboardCommand } from "./onboard.ts";
import { pairingCommands } from "./pairing.ts";
import { peopleCommands } from "./people.ts";
import { parseCommandLine } from "./parse.ts";
import { sdkCommand } from "./sdk.ts";
import { sessionCommands } from "./sessions.ts";
import { talkCommands } from "./talk.ts";
import { tokenCommands } from "./tokens.ts";
import { serviceCommands } from "./service.ts";
import { skillCommands } from "./skills.ts";
import { stopCommand, turnCommands } from "./session-controls.ts";
import { webhookCommands } from "./webhooks.ts";

export const commands: readonly CommandSpec[] = [
  upCommand,
  downCommand,
  ...serviceCommands,
  onboardCommand,
  ...talkCommands,
  sdkCommand,
  consoleCommand,
  statusCommand,
  ...sessionCommands,
  ...turnCommands,
  stopCommand,
  ...deadLetterCommands,
  ...channelCommands,
  ...webhookCommands,
  ...peopleCommands,
  ...pairingCommands,
  ...tokenCommands,
  ...evalCommands,
  ...docsCommands,
  ...skillCommands,
  ...cronCommands,
  ...mcpCommands,
  ...configCommands,
  doctorCommand,
  logsCommand,
  backupCommand,
  restoreCommand,
  completionCommand(() => commands),
];

/** Runs a command line. Returns the exit code; never rejects. */
export async function runCommandLine(args: readonly string[], io: Io): Promise<number> {
  try {
    const parsed = parseCommandLine(args, commands, io.stdout.columns || undefined);
    if ("command" in parsed) return await parsed.command.run({ ...parsed, io });
    io.stdout.write(asTyped(parsed.text, io.env));
    return exitCodes.ok;
  } catch (error) {
    return report(error, io);
  }
}

/** Prints a CliError as text. Any other error is a bug and is printed with its stack. */
function report(failure: unknown, io: Io): number {
  if (!(failure instanceof CliError)) {
    note(io, failure instanceof Error ? (failure.stack ?? failure.message) : String(failure));
    return exitCodes.error;
  }
  note(io, painter(io.stderr, io.env)("red", asTyped(failure.message, io.env)));
  if (failure.fix !== null) note(io, asTyped(failure.fix, io.env));
  return failure.exitCode;
}
