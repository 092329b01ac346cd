// The process of a mail server: its start, until its port accepts connections, and its end.
import { spawn, type ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { acceptsConnections } from "../port.ts";
import { asServerUser } from "./unprivileged.ts";

/** Bounds a hang: a server that listens ends the wait immediately. */
const startsWithinMs = 60_000;

export interface ServerProcess {
  /** Ends the server without a goodbye: every connection is cut. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** What the server has written so far. */
  output(): string;
  /** Calls `listener` after each output until the returned function is called. */
  onOutput(listener: () => void): () => void;
}

/** Starts a server and waits until `port` accepts connections. Rejects with its output when it ends first. */
export async function startServer(
  command: string,
  args: readonly string[],
  options: { folder: string; port: number; env: Record<string, string> },
): Promise<ServerProcess> {
  let child: ChildProcess | null = null;
  let output = "";
  const written = new EventEmitter();
  const kill = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, "exit");
    // The whole process group: a server has a process for each connection.
    if (ending.pid !== undefined) process.kill(-ending.pid, "SIGKILL");
    await exited;
  };
  const start = async (): Promise<void> => {
    const [program, all] = asServerUser(command, args);
    const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", ...options.env };
    const started = spawn(program, all, {
      cwd: options.folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    child = started;
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (part: Buffer) => {
        output += part.toString();
        written.emit("output");
      });
    const until = performance.now() + startsWithinMs;
    while (!(await acceptsConnections(options.port))) {
      if (started.exitCode !== null || performance.now() > until) {
        await kill();
        throw new Error(`${command} did not start:\n${output.slice(-2_000)}`);
      }
      await delay(20);
    }
  };
  await start();
  const onOutput = (listener: () => void) => {
    written.on("output", listener);
    return () => void written.off("output", listener);
  };
  return { kill, start, output: () => output, onOutput };
}
