// Runs a signal-cli daemon as a child of the gateway. The child ends with the gateway, also when the gateway is killed: a shell between
// them waits for the end of its input, which only the gateway holds.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { FileHandle } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { oneLine } from "@parley/kit";
import { AccountRejectedError, type ChannelHost } from "../channel.ts";
import { endpoint } from "./rpc.ts";

const readyPollMs = 150;
const readyWithinMs = 30_000;
const checkWithinMs = 1_000;
/** The lease waits 3 s for a connection to close. */
const stopWithinMs = 2_000;

/** Descriptor 3 is the gateway's end of the input; the daemon itself reads nothing. */
const lifeline = [
  "exec 3<&0 </dev/null",
  '"$@" 3<&- &',
  "daemon=$!",
  '{ cat <&3; kill "$daemon"; } >/dev/null 2>&1 &',
  "exec 3<&-",
  'wait "$daemon"',
].join("\n");

export interface DaemonOptions {
  command: string;
  dataDir: string;
  number: string;
  daemonUrl: string;
  /** Takes each received message as a line of JSON. */
  receivedLog: FileHandle;
  log: ChannelHost["log"];
}

export interface Daemon {
  readonly running: boolean;
  stop(): Promise<void>;
}

class DaemonError extends Error {
  override readonly name = "DaemonError";
}

/** Whether a daemon answers at this address. Never rejects. */
export async function isReady(daemonUrl: string, signal: AbortSignal): Promise<boolean> {
  try {
    const withinMs = AbortSignal.any([signal, AbortSignal.timeout(checkWithinMs)]);
    const response = await fetch(endpoint(daemonUrl, "check"), { redirect: "error", signal: withinMs });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}

/**
 * Starts the daemon and waits until it answers. Rejects with a DaemonError when it does not, or when another daemon has the address, and
 * with AccountRejectedError when the number is not registered.
 */
export async function startDaemon(options: DaemonOptions, signal: AbortSignal): Promise<Daemon> {
  const { command, dataDir, number, daemonUrl, receivedLog, log } = options;
  if (await isReady(daemonUrl, signal)) {
    throw new DaemonError(
      `another daemon already answers at ${daemonUrl}; end it, or set start_daemon = false to use it`,
    );
  }
  const address = new URL(daemonUrl);
  const listen = `${address.hostname}:${address.port === "" ? "80" : address.port}`;
  const daemonArguments = ["--scrub-log", "--output=json", "--config", dataDir, "--account", number, "daemon"];
  const child = spawn(
    "/bin/sh",
    ["-c", lifeline, "sh", command, ...daemonArguments, "--http", listen, "--receive-mode=manual"],
    // A process group of its own, so that it can be killed with its shell.
    { stdio: ["pipe", receivedLog.fd, "pipe"], detached: true },
  );
  const exit = once(child, "exit");
  exit.catch(() => undefined);
  const { pid, stdin, stderr } = child;
  if (pid === undefined || stdin === null || stderr === null) throw new DaemonError("the shell could not be started");
  let errorOutput = "";
  stderr.on("data", (part: Buffer) => {
    errorOutput = (errorOutput + part.toString("utf8")).slice(-2_000);
    for (const line of part.toString("utf8").split("\n")) {
      if (/^(?:WARN|ERROR)/.test(line)) log.warn({ text: oneLine(line, 500) }, "message of the daemon");
    }
  });
  stdin.on("error", () => undefined);
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const exited = exit.then(
    () => stdin.destroy(),
    () => undefined,
  );
  const stop = async (): Promise<void> => {
    stdin.end();
    await Promise.race([exited, delay(stopWithinMs, undefined, { ref: false })]);
    if (isRunning()) process.kill(-pid, "SIGKILL");
  };
  const deadline = performance.now() + readyWithinMs;
  while (isRunning() && !signal.aborted && performance.now() < deadline) {
    if (await isReady(daemonUrl, signal)) {
      return {
        get running() {
          return isRunning();
        },
        stop,
      };
    }
    await Promise.race([exited, delay(readyPollMs)]);
  }
  const hasEnded = !isRunning();
  await stop();
  const reason = oneLine(errorOutput, 300);
  if (/not registered/i.test(reason)) throw new AccountRejectedError(`the number is not registered: ${reason}`);
  throw new DaemonError(
    hasEnded ? `the daemon ended: ${reason}` : `the daemon did not answer within ${readyWithinMs / 1_000} s: ${reason}`,
  );
}
