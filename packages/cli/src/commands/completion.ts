// `parley completion`: prints a shell script that completes commands and options.

import type { CommandSpec, Run } from "../command-line/command.ts";
import { completionScript } from "../command-line/completion.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";

const shells = ["bash", "zsh", "fish"] as const;

export function completionOf(commands: readonly CommandSpec[]): Run {
  return async ({ positionals, io }) => {
    const shell = shells.find((each) => each === positionals[0]);
    if (shell === undefined) throw new UsageError(`Name a shell: ${shells.join(", ")}.`, "parley completion --help");
    io.stdout.write(completionScript(shell, commands));
    return exitCodes.ok;
  };
}
