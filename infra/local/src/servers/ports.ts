// Free loopback ports for private servers.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

import { LocalError } from "../errors.ts";

/**
 * Below the system's range for outgoing connections (from 32768): otherwise a client that reconnects to a stopped server could get that
 * server's port as its local port, connect to itself and block the restart.
 */
const LOWEST_PORT = 18_000;
const HIGHEST_PORT = 30_000;
const TRIES = 20;

/** True if nothing listens on this loopback port. */
export async function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = createServer();
  probe.once("error", () => resolve(false));
  probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  return promise;
}

/** A loopback port that was free when it was checked. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    if (await isFree(port)) return port;
  }
  throw new LocalError(
    "port_taken",
    `No free loopback port found in ${TRIES} tries between ${LOWEST_PORT} and ${HIGHEST_PORT}.`,
  );
}

/** Starts a server on `wanted` or on a free port; chooses another free port if a process took it in the meantime. */
export async function onPort<T>(wanted: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  if (wanted !== undefined && wanted !== 0) return start(wanted);
  for (let tries = 1; ; tries += 1) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (!(error instanceof LocalError) || error.code !== "port_taken" || tries === TRIES) throw error;
    }
  }
}
