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

/** What a person can act on is said in words; anything else is a bug and is shown whole. */
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
// `parley logs | head` is no failure: whoever read has seen enough.
io.stdout.on("error", (error: Error & { code?: string }) => process.exit(error.code === "EPIPE" ? 0 : 1));
const code = await main(process.argv.slice(2), io).catch((failure: unknown) => report(failure, io));
// Standard output may be a pipe that is read slowly: everything is handed over before the process ends.
io.stdout.write("", () => process.exit(code));
