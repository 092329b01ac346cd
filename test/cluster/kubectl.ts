// Runs kubectl with one context and one namespace.
import { execFile, spawn, type ChildProcess } from "node:child_process";

export interface Kubectl {
  /** Resolves with the standard output. Rejects with KubectlError. */
  run(args: readonly string[], options?: RunOptions): Promise<string>;
  /** A command that goes on running. */
  start(args: readonly string[]): ChildProcess;
}

export interface RunOptions {
  /** Standard input. */
  input?: string;
  /** Default: 60 s. */
  timeoutMs?: number;
}

export class KubectlError extends Error {
  override readonly name = "KubectlError";
  readonly stdout: string;
  readonly stderr: string;
  constructor(args: readonly string[], stdout: string, stderr: string) {
    super(`kubectl ${args.slice(0, 4).join(" ")}: ${stderr.trim() || stdout.trim() || "it failed without a message"}`);
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

const defaultTimeoutMs = 60_000;
const maxOutputBytes = 64 * 1024 * 1024;

export function openKubectl(program: string, context: string, namespace: string): Kubectl {
  const all = (args: readonly string[]) => ["--context", context, "--namespace", namespace, ...args];
  return {
    run: (args, { input, timeoutMs = defaultTimeoutMs } = {}) =>
      new Promise((resolve, reject) => {
        const options = { timeout: timeoutMs, maxBuffer: maxOutputBytes };
        const child = execFile(program, all(args), options, (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else if (error.killed === true)
            reject(new KubectlError(args, stdout, `no end within ${timeoutMs / 1_000} s. ${stderr}`));
          else reject(new KubectlError(args, stdout, stderr === "" && stdout === "" ? error.message : stderr));
        });
        // A program that ends before it has read everything is reported by its exit code.
        child.stdin?.on("error", () => undefined);
        child.stdin?.end(input ?? "");
      }),
    start: (args) => spawn(program, all(args), { stdio: ["ignore", "pipe", "pipe"] }),
  };
}
