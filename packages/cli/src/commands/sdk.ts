// `parley sdk`: the executable that Claude Agent SDKs start.

import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { ownVersion, print, readAll, UsageError, type Io } from "../io/io.ts";
import { OptionValues } from "../io/options.ts";
import { runWith } from "../run/run.ts";
import { sdkOptions } from "../sdk/flags.ts";
import type { CommandSpec } from "./command.ts";

async function runSdk(args: readonly string[], io: Io): Promise<number> {
  if (args.some((arg) => arg === "--version" || arg === "-v")) {
    print(io, `${ownVersion()} (Parley)`);
    return 0;
  }
  if (args.some((arg) => arg === "--help" || arg === "-h")) {
    print(io, help);
    return 0;
  }
  // The data folder, the address and the token come from the environment: PARLEY_HOME, PARLEY_URL, PARLEY_TOKEN.
  const target = findTarget(new OptionValues([]), io);
  const { mcpServers } = await new Gateway(target).run(api.agent);
  const options = sdkOptions(args, mcpServers);
  if (options.streamInput || options.prompt !== null) return runWith(options, target, io);
  if (io.stdin.isTTY)
    throw new UsageError("Name a prompt, or start it from a Claude Agent SDK.", "docs/sdk.md shows how.");
  return runWith({ ...options, prompt: await readAll(io.stdin) }, target, io);
}

const summary = "run as the executable of a Claude Agent SDK";
const details = `Set pathToClaudeCodeExecutable (TypeScript) or cli_path (Python) to the file bin/parley-sdk.mjs of this package, and
PARLEY_HOME or PARLEY_URL in the environment. The flags are those of the SDK; docs/sdk.md lists what each does here.`;
const help = `Usage: parley sdk [options] [<prompt>]\n\n${summary}\n\n${details}`;

export const sdkCommand: CommandSpec = {
  name: "sdk",
  summary,
  operands: ["[<prompt>]"],
  details,
  options: {},
  examples: ["parley sdk --print --output-format json 'which files are in the workspace?'"],
  passThrough: true,
  run: ({ positionals, io }) => runSdk(positionals, io),
};
