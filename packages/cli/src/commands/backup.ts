// `parley backup` and `parley restore`: they run the store's programs, which need the database's owner and the folders of the deployment.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { workspaceFolders } from "@parley/local";

import { findTarget } from "../cluster/target.ts";
import { CliError, exitCodes, UsageError } from "../io/io.ts";
import { flag, homeOption } from "../io/options.ts";
import type { Call, CommandSpec } from "./command.ts";

const inRepository = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
const backupScript = inRepository("services/store/src/backup.ts");
const restoreScript = inRepository("services/store/src/restore.ts");

export const backupCommand: CommandSpec = {
  name: "backup",
  summary: "copy the database and all files into a new folder while the cluster runs",
  operands: ["<new folder>"],
  details:
    "For the cluster of the data folder, or for the one that DATABASE_URL and PARLEY_BLOB_DIR, PARLEY_WORKSPACE, PARLEY_CHECKPOINTS, PARLEY_STATE name.",
  options: homeOption,
  examples: ["parley backup /backups/2026-11-23"],
  run: (call) => runProgram(backupScript, call, []),
};

export const restoreCommand: CommandSpec = {
  name: "restore",
  summary: "restore a backup into an empty database and empty folders",
  operands: ["<folder>"],
  details:
    "Texts that were not sent are not sent, jobs do not run for times of the past, and processes of before cannot write any more.",
  options: {
    ...homeOption,
    replace: flag("delete what the database and the folders contain; stop the services first"),
  },
  examples: ["parley restore /backups/2026-11-23", "parley restore /backups/2026-11-23 --replace"],
  run: (call) => runProgram(restoreScript, call, call.values.has("replace") ? ["--replace"] : []),
};

async function runProgram(
  program: string,
  { values, positionals, io }: Call,
  options: readonly string[],
): Promise<number> {
  const [folder] = positionals;
  if (folder === undefined) throw new UsageError("Name the folder of the backup.");
  const { home } = findTarget(values, io);
  const url = io.env["DATABASE_URL"] || home.state?.databaseUrl;
  if (url === undefined)
    throw new CliError("There is no database: no cluster runs on this machine.", {
      fix: "Start it with: npm start   (or set DATABASE_URL to the role that owns the schema)",
    });
  // The folders of `npm start`; a deployment elsewhere names its own.
  const named = home.state?.workspace ?? io.env["PARLEY_WORKSPACE"];
  const { workspace, state, checkpoints } = workspaceFolders(home.path, named && resolve(io.cwd, named));
  const local = { PARLEY_WORKSPACE: workspace, PARLEY_CHECKPOINTS: checkpoints, PARLEY_STATE: state };
  const child = spawn(process.execPath, ["--conditions=@parley/source", program, resolve(io.cwd, folder), ...options], {
    env: { ...(io.env["DATABASE_URL"] ? {} : local), ...io.env, DATABASE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stdout.on("data", (chunk: Buffer) => io.stdout.write(chunk));
  child.stderr.on("data", (chunk: Buffer) => io.stderr.write(chunk));
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0 ? exitCodes.ok : exitCodes.error;
}
