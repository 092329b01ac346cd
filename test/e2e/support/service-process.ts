// One service as a separate process, with the environment of a test: for starts that never finish.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { ServiceName } from "@parley/contracts";
import { freePort } from "@parley/local";
import { servicePrograms, type Cleanup } from "@parley/testing";

interface Probe {
  status: number;
  body: string;
}

export interface ServiceProcess {
  child: ChildProcess;
  /** Resolves when the process has ended and `lines` is complete. */
  ended: Promise<unknown>;
  /** Log lines, and all other output, in order. */
  lines: readonly string[];
  /** Sends a request to the health listener; status 0 while no port is open. */
  probe(path: string): Promise<Probe>;
  /** Resolves with the first response that fulfils the condition; rejects when the process ends before that. */
  until(path: string, wanted: (probe: Probe) => boolean): Promise<Probe>;
  /** Resolves with the first line, printed before or after this call, that matches. */
  line(pattern: RegExp): Promise<string>;
}

export interface ServiceOptions {
  env?: Record<string, string>;
  /** The user of the process; only root may choose one. */
  uid?: number;
}

/** Starts the service; the process ends with the cleanup. */
export async function startService(
  cleanup: Cleanup,
  service: ServiceName,
  { env = {}, uid }: ServiceOptions = {},
): Promise<ServiceProcess> {
  const port = await freePort();
  const { PATH = "/usr/bin:/bin", NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, ["--conditions=@parley/source", servicePrograms()[service]], {
    env: {
      PATH,
      ...(uid === undefined && NODE_COMPILE_CACHE !== undefined ? { NODE_COMPILE_CACHE } : {}),
      PARLEY_REPLICA: `${service}-1`,
      PARLEY_HEALTH_PORT: String(port),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const exited = once(child, "exit");
  const ended = once(child, "close");
  cleanup.add(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream.setEncoding("utf8").on("data", (part: string) => {
      const whole = (rest + part).split("\n");
      rest = whole.pop() ?? "";
      lines.push(...whole);
      for (const look of waiting) look();
    });
  }
  const failed = ended.then(() => Promise.reject(new Error(`${service} ended:\n${lines.join("\n")}`)));
  failed.catch(() => undefined);

  const probe = async (path: string): Promise<Probe> => {
    try {
      const response = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: response.status, body: await response.text() };
    } catch {
      return { status: 0, body: "" };
    }
  };
  return {
    child,
    ended,
    lines,
    probe,
    until: (path, wanted) => {
      const poll = async (): Promise<Probe> => {
        for (;;) {
          const answer = await probe(path);
          if (wanted(answer)) return answer;
          if (child.exitCode !== null || child.signalCode !== null) return failed;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      };
      return Promise.race([poll(), failed]);
    },
    line: (pattern) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const look = () => {
        const found = lines.find((line) => pattern.test(line));
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
      return Promise.race([promise, failed]);
    },
  };
}
