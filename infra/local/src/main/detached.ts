// `npm start -- --detach`: the cluster runs in a process of its own session, without a terminal. Until it is ready, that process sends
// its lines to the one that started it; later ones go to logs/supervisor.log.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { knownSystemError, LocalError } from "../errors.ts";
import { openHome } from "../home.ts";
import { StopRequested, type StopRequests } from "./stop-requests.ts";

const mainScript = fileURLToPath(new URL("../main.ts", import.meta.url));

const Message = z.union([z.object({ line: z.string() }), z.object({ ready: z.literal(true) })]);

/** True in the process that runs the cluster in the background. */
export const isDetached = process.send !== undefined;

/** False if no terminal waits for the start. */
export function sendToTerminal(message: z.infer<typeof Message>): boolean {
  // Without a callback, a terminal that was closed meanwhile would end this process.
  return process.connected && process.send?.(message, () => undefined) === true;
}

/** Resolves when all lines have been sent. */
export async function sentToTerminal(): Promise<void> {
  if (!process.connected) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  process.send?.({ end: true }, () => resolve());
  await promise;
}

/**
 * Starts `npm start` with these arguments in the background and resolves when it is ready. Shows its lines meanwhile. A stop request
 * stops it. Throws LocalError if it does not start, after its reason was shown.
 */
export async function startDetached(home: string, args: readonly string[], requests: StopRequests): Promise<void> {
  const log = openLog(home);
  const words = args.filter((word) => word !== "--detach" && word !== "-d");
  const child = spawn(process.execPath, ["--conditions=@parley/source", mainScript, ...words, "--no-chat"], {
    detached: true,
    stdio: ["ignore", log, log, "ipc"],
  });
  closeSync(log);
  const stop = (): boolean => child.kill("SIGTERM");
  requests.first.addEventListener("abort", stop, { once: true });
  requests.second.addEventListener("abort", stop, { once: true });
  const { promise: ready, resolve } = Promise.withResolvers<"ready">();
  child.on("message", (message) => {
    const read = Message.safeParse(message).data;
    if (read === undefined) return;
    if ("line" in read) process.stderr.write(`${read.line}\n`);
    else resolve("ready");
  });
  const ended = once(child, "close").then(([code]) => code as number | null);
  const outcome = await Promise.race([ready, ended]);
  requests.first.removeEventListener("abort", stop);
  requests.second.removeEventListener("abort", stop);
  if (outcome === "ready") {
    child.disconnect();
    child.unref();
    return;
  }
  if (requests.first.aborted) throw new StopRequested();
  throw new LocalError("service_failed", `Parley did not start; its log is ${join(home, "logs", "supervisor.log")}.`);
}

/** Appended to: it may belong to a process that runs already. */
function openLog(home: string): number {
  try {
    return openSync(join(openHome(home).logs, "supervisor.log"), "a", 0o600);
  } catch (error) {
    throw knownSystemError(error, home) ?? error;
  }
}
