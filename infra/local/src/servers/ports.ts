// Free loopback ports for private servers, and the HTTP ports of the gateways.

import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { createServer } from "node:net";

import { LocalError } from "../errors.ts";
import { listenerOf } from "../processes.ts";

/**
 * Below the system's range for outgoing connections (from 32768): otherwise a client that reconnects to a stopped server could get that
 * server's port as its local port, connect to itself and block the restart.
 */
const lowestPort = 18_000;
const highestPort = 30_000;
const maxTries = 20;

/** Why a process cannot listen on this loopback port, such as `EADDRINUSE`; null if it can. */
async function listenProblem(port: number): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const probe = createServer();
  probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(null)));
  return promise;
}

/**
 * Reserves a port until this process ends, against other calls of `freePort` here and in other processes: a server that gets the port listens
 * only some time later. The UDP port of the same number marks it; false: it is reserved already.
 */
async function reserve(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const reservation = createSocket("udp4");
  reservation.once("error", () => reservation.close(() => resolve(false)));
  reservation.bind({ port, address: "127.0.0.1", exclusive: true }, () => resolve(true));
  reservation.unref();
  return promise;
}

/** The error for a port that cannot be used. `holder`: the process that listens on it, if known. */
export function portError(port: number, problem: string, holder: string | null): LocalError {
  if (problem === "EACCES") {
    return new LocalError("no_access", `Port ${port} may only be used by root (EACCES).`, {
      fix: "Choose a port from 1024 up with PARLEY_HTTP_PORT=<port>; a reverse proxy can serve the low port.",
    });
  }
  return new LocalError("port_taken", `Port ${port} is taken${holder === null ? "" : ` by ${holder}`}.`, {
    fix: "Stop that program, or choose another port with PARLEY_HTTP_PORT=<port> (0: any free port).",
  });
}

/** A loopback port on which nothing listens, and which no other call returns while this process runs. */
export async function freePort(lowest = lowestPort, highest = highestPort): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = randomInt(lowest, highest + 1);
    if ((await listenProblem(port)) === null && (await reserve(port))) return port;
  }
  throw new LocalError(
    "port_taken",
    `No free loopback port found in ${maxTries} tries between ${lowest} and ${highest}.`,
  );
}

/** Starts a server on `wanted` or on a free port; chooses another free port if a process took it in the meantime. */
export async function startOnPort<T>(wanted: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  if (wanted !== undefined && wanted !== 0) return start(wanted);
  for (let tries = 1; ; tries += 1) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (!(error instanceof LocalError) || error.code !== "port_taken" || tries === maxTries) throw error;
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
      continue;
    }
    const problem = await listenProblem(port);
    if (problem === null) ports.push(port);
    else if (port === wanted || problem === "EACCES") throw portError(port, problem, listenerOf(port));
  }
  return ports;
}
