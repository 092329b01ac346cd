// A supervised private server: after an unexpected exit it restarts with the same port and data.

import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "@parley/contracts";

import type { ServerProcess } from "../servers/process.ts";
import { Backoff } from "./backoff.ts";

export interface SupervisedServer<S extends ServerProcess> {
  /** The current process. */
  current(): S;
  /** Sends SIGKILL or another terminating signal, and resolves with the new process. */
  restart(signal?: "SIGKILL" | "SIGTERM" | "SIGINT"): Promise<S>;
  stop(graceMs?: number): Promise<void>;
}

/** Starts and supervises a server. The first call of `start` has no port, later ones have its port. */
export async function superviseServer<S extends ServerProcess>(
  start: (port?: number) => Promise<S>,
  say: (line: string) => void,
): Promise<SupervisedServer<S>> {
  const backoff = new Backoff();
  const stopping = new AbortController();
  let server = await start();
  let waiters: ((server: S) => void)[] = [];

  const watch = async (): Promise<void> => {
    for (;;) {
      const begun = performance.now();
      const { code, signal } = await server.exited;
      if (stopping.signal.aborted) return;
      const lines = server.lastLines().slice(-3).join("\n");
      say(`${server.name} exited (${signal ?? `exit code ${code}`}); restarting. Its last lines:\n${lines}`);
      const next = await again(server.port, performance.now() - begun);
      if (next === null) return;
      server = next;
      for (const resolve of waiters.splice(0)) resolve(server);
    }
  };
  const again = async (port: number, livedMs: number): Promise<S | null> => {
    for (let lifeMs = livedMs; ; lifeMs = 0) {
      await delay(backoff.nextDelayMs(lifeMs), undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return null;
      try {
        return await start(port);
      } catch (error) {
        say(errorMessage(error));
      }
    }
  };
  const watching = watch();

  return {
    current: () => server,
    restart: async (signal = "SIGKILL") => {
      const { promise, resolve } = Promise.withResolvers<S>();
      waiters.push(resolve);
      await server.kill(signal);
      return promise;
    },
    stop: async (graceMs) => {
      stopping.abort();
      waiters = [];
      await server.stop(graceMs);
      await watching;
      await server.stop(graceMs); // a process that started during the stop
    },
  };
}
