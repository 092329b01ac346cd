// A gateway replica in a process of its own, for tests that kill it at a fault point.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { healthReports } from "@parley/contracts";
import { servicePrograms } from "@parley/testing";
import { token, type GatewayStack } from "./stack.ts";

export interface GatewayProcess {
  child: ChildProcess;
  url: string;
  /** Makes this process fail once at a named fault point. */
  failAt(point: string, action: string): Promise<void>;
}

/** Starts a replica as a separate process, which a test may kill. `program`: of another copy of the sources. */
export async function startProcess(
  stack: GatewayStack,
  replica: string,
  folder: string,
  env: Record<string, string>,
  program: string = servicePrograms()["channel-gateway"],
): Promise<GatewayProcess> {
  const faults = join(folder, "faults");
  await mkdir(faults);
  const child = fork(program, {
    execArgv: ["--conditions=@parley/source"],
    stdio: ["ignore", process.env["PARLEY_TEST_LOGS"] === undefined ? "ignore" : "inherit", "inherit", "ipc"],
    env: {
      PATH: process.env["PATH"] ?? "",
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "",
      PARLEY_NATS_URL: stack.stack.nats.urlFor("channel-gateway"),
      PARLEY_REPLICA: replica,
      PARLEY_HTTP_PORT: "0",
      PARLEY_TOKEN: token,
      FAULT_DIR: faults,
      ...env,
    },
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the gateway ended with code ${String(code)} before it was ready`);
  });
  ended.catch(() => undefined);
  let httpPort: number | undefined;
  while (httpPort === undefined) {
    [{ httpPort }] = (await Promise.race([once(child, "message"), ended])) as [{ httpPort?: number }];
  }
  return {
    child,
    url: `http://127.0.0.1:${httpPort}`,
    failAt: async (point, action) => {
      // Written atomically, because the process may reach the point at any moment.
      const order = join(faults, `${point}.new`);
      await writeFile(order, action);
      await rename(order, join(faults, point));
    },
  };
}

/** Resolves when the replica owns the account's connection. */
export async function owned(stack: GatewayStack, name: string, account: string): Promise<void> {
  const bus = await stack.stack.bus("operator");
  for (;;) {
    const reports = await bus.gather(healthReports["channel-gateway"], {}, 100);
    const owner = reports.find(({ replica }) => replica === name);
    if (owner?.details["leases"] === `telegram:${account}`) return;
  }
}
