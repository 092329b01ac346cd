// The command `parley`.

import { commandHelp, overview } from "./command-line/help.ts";
import { parseCommandLine } from "./command-line/parse.ts";
import { commands } from "./commands.ts";
import { CliError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { note, painter, processIo, type Io } from "./io.ts";
import { ownVersion } from "./version.ts";

async function main(args: readonly string[], io: Io): Promise<number> {
  const parsed = parseCommandLine(args, commands);
  switch (parsed.kind) {
    case "help":
      io.stdout.write(parsed.command === null ? overview(commands) : commandHelp(parsed.command));
      return exitCodes.ok;
    case "version":
      io.stdout.write(`parley ${ownVersion()}\n`);
      return exitCodes.ok;
    case "run": {
      const run = await parsed.command.load();
      return run({ ...parsed, io });
    }
    default:
      return parsed satisfies never;
  }
}

/** Prints a CliError as text. Any other error is a bug and is printed with its stack. */
function report(failure: unknown, io: Io): number {
  const paint = painter(io.stderr, io.env);
  if (!(failure instanceof CliError)) {
    note(io, failure instanceof Error ? (failure.stack ?? failure.message) : String(failure));
    return exitCodes.error;
  }
  note(io, paint("red", failure.message));
  if (failure.fix !== null) note(io, failure.fix);
  return failure.exitCode;
}

const io = processIo();
// `parley logs | head` is not a failure: the reader closed the pipe.
io.stdout.on("error", (error: Error & { code?: string }) => process.exit(error.code === "EPIPE" ? 0 : 1));
const code = await main(process.argv.slice(2), io).catch((failure: unknown) => report(failure, io));
// Standard output may be a slow pipe: flush it before the process exits.
io.stdout.write("", () => process.exit(code));
