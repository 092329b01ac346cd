// Free loopback ports for private servers, and the HTTP ports of the gateways.

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

import { LocalError } from "../errors.ts";
import { listenerOf } from "../processes.ts";

/**
 * Below the system's range for outgoing connections (from 32768): otherwise a client that reconnects to a stopped server could get that
 * server's port as its local port, connect to itself and block the restart.
 */
const LOWEST_PORT = 18_000;
const HIGHEST_PORT = 30_000;
const TRIES = 20;

/** True if nothing listens on this loopback port. */
async function isFree(port: number): Promise<boolean> {
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

/** One port per gateway: the wanted one and the next free ones after it; 0: any free ports. */
export async function gatewayPorts(wanted: number, count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let port = wanted; ports.length < count; port += 1) {
    if (wanted === 0) {
      const free = await freePort();
      if (!ports.includes(free)) ports.push(free);
    } else if (await isFree(port)) {
      ports.push(port);
    } else if (port === wanted) {
      const holder = listenerOf(port);
      throw new LocalError("port_taken", `Port ${port} is taken${holder === null ? "" : ` by ${holder}`}.`, {
        fix: "Stop that program, or choose another port with PARLEY_HTTP_PORT=<port> (0: any free port).",
      });
    }
  }
  return ports;
}
