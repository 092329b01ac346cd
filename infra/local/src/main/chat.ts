// The chat on this terminal: `parley chat` as a child process.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../../../../packages/cli/src/main.ts", import.meta.url));

/** Opens the chat and resolves when it has ended, by itself or through the signal. */
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
