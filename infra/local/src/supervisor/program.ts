// The paths of the scripts that a cluster runs; runs the database migration.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import type { ServiceName } from "@parley/contracts";

import { LocalError } from "../errors.ts";
import { LogFile } from "./log-file.ts";

export interface Programs {
  /** The script of the database migration; null: the schema is current. */
  readonly migrate: string | null;
  readonly services: Readonly<Record<ServiceName, string>>;
}

/** The scripts of this repository. */
export const repositoryPrograms = {
  migrate: inRepository("services/store/src/migrate.ts"),
  services: {
    store: inRepository("services/store/src/main.ts"),
    "agent-core": inRepository("services/agent-core/src/main.ts"),
    "tool-runner": inRepository("services/tool-runner/src/main.ts"),
    "channel-gateway": inRepository("services/channel-gateway/src/main.ts"),
  },
} satisfies Programs;

function inRepository(path: string): string {
  return fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
}

/** Runs the migration as a child process. Rejects with the signal's reason when it aborts. */
export async function migrate(
  script: string,
  env: Readonly<Record<string, string>>,
  logPath: string,
  signal: AbortSignal,
): Promise<void> {
  using log = new LogFile(logPath);
  const child = spawn(process.execPath, ["--conditions=@parley/source", script], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    signal,
  });
  child.stdout.on("data", (chunk: Buffer) => log.write(chunk));
  child.stderr.on("data", (chunk: Buffer) => log.write(chunk));
  const [code] = (await once(child, "close").catch((error: unknown) => {
    // The error of an aborted process does not contain the signal's reason.
    throw signal.aborted ? signal.reason : error;
  })) as [number | null];
  if (code !== 0) throw new LocalError("service_failed", `Database migration failed:\n${log.lastLines().join("\n")}`);
}
