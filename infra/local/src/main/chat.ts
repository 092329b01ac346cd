// The chat on this terminal: the CLI's, as a process of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../../../../packages/cli/src/main.ts", import.meta.url));

/** Opens the chat and resolves when it has ended, or when the signal has ended it. */
export async function chat(home: string, signal: AbortSignal): Promise<void> {
  const child = spawn(process.execPath, ["--conditions=@parley/source", CLI, "chat", "--home", home], {
    stdio: "inherit",
  });
  const end = (): void => {
    child.kill("SIGTERM");
  };
  signal.addEventListener("abort", end, { once: true });
  await once(child, "exit");
  signal.removeEventListener("abort", end);
}
