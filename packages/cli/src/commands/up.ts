// `parley up`: runs the same program as `npm start`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

import type { Run } from "../command-line/command.ts";

const START = fileURLToPath(new URL("../../../../infra/local/src/main.ts", import.meta.url));

/** Runs it on this terminal. It also receives Ctrl-C from the terminal, and treats signals in quick succession as one. */
export const run: Run = async ({ rest, io }) => {
  const child = spawn(process.execPath, ["--conditions=@parley/source", START, ...rest], {
    cwd: io.cwd,
    env: { ...io.env },
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
};
