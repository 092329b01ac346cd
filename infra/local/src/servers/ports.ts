// Free loopback ports for private servers.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

import { LocalError } from "../errors.ts";

/**
 * Below the system's range for outgoing connections (32768 up): a client that keeps reconnecting to a stopped server must not be
 * given that server's port as its own, or it would connect to itself and the server could not come back.
 */
const LOWEST_PORT = 18_000;
const HIGHEST_PORT = 30_000;
const TRIES = 20;

/** True when nothing listens on that loopback port. */
export async function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = createServer();
  probe.once("error", () => resolve(false));
  probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  return promise;
}

/** A loopback port that was free a moment ago. */
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

/** Starts something on `wanted`, or on a free port, choosing again when another process took it in between. */
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
