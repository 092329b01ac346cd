// `parley docs push`: writes a folder's documents to the store. If the store has anything newer, nothing is written without --force.

import { resolve } from "node:path";

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { ChangedAnswer, DocumentsAnswer, isConflict } from "../docs/answers.ts";
import { readFolder, writeBases, type Folder } from "../docs/folder.ts";
import { planPush, type Remote, type Step } from "../docs/plan.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print, type Io } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [given] = positionals;
  if (given === undefined) throw new UsageError("Name a folder: parley docs push ./docs");
  const root = resolve(io.cwd, given);
  const gateway = new Gateway(findTarget(values, io));
  const folder = readFolder(root);
  for (const line of folder.ignored) note(io, `ignored: ${line}`);
  const { documents } = await gateway.get("/api/documents", DocumentsAnswer);
  const remote = new Map(documents.map((document) => [document.path, document]));
  const steps = planPush({ local: folder.documents, bases: folder.bases, remote }, { remove: values.has("delete") });
  const conflicts = steps.filter((step) => step.act === "conflict");
  for (const { path, reason } of conflicts)
    note(io, `${values.has("force") ? "forced" : "refused"}: ${path} ${reason}`);
  if (conflicts.length > 0 && !values.has("force") && !values.has("dry-run")) {
    throw new CliError("Nothing was pushed: the store has changes that your folder does not have.", {
      fix: "Fetch them with parley docs pull, or overwrite them with --force (older versions are kept).",
    });
  }
  if (steps.length === 0) print(io, "The store is up to date.");
  if (values.has("dry-run")) {
    for (const step of steps) if (step.act !== "conflict") print(io, `would ${wordOf(step, remote)} ${step.path}`);
    return conflicts.length > 0 && !values.has("force") ? exitCodes.error : exitCodes.ok;
  }
  await push(gateway, root, folder, remote, steps, io);
  return exitCodes.ok;
};

async function push(
  gateway: Gateway,
  root: string,
  folder: Folder,
  remote: ReadonlyMap<string, Remote>,
  steps: readonly Step[],
  io: Io,
): Promise<void> {
  const bases = { ...folder.bases };
  try {
    for (const step of steps) {
      const { path } = step;
      const local = folder.documents.get(path);
      // Overwrite only the version that was listed, nothing newer.
      const expectedVersion = step.act === "conflict" ? (remote.get(path)?.version ?? 0) : step.expectedVersion;
      const target = { path, expectedVersion, author: "import" };
      const { document } =
        local === undefined
          ? await gateway.post("/api/documents/delete", target, ChangedAnswer)
          : await gateway.post("/api/documents/put", { ...target, content: local.content }, ChangedAnswer);
      if (local === undefined) delete bases[path];
      else bases[path] = { version: document.version, sha256: document.sha256 };
      print(io, `${local === undefined ? "removed" : "pushed "}  ${path} (version ${document.version})`);
    }
    for (const [path, { version, sha256 }] of remote)
      if (folder.documents.get(path)?.sha256 === sha256) bases[path] = { version, sha256 };
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new CliError(`${error.message}; the documents listed above were pushed, the rest were not.`, {
      fix: "parley docs pull, then push again.",
      cause: error,
    });
  } finally {
    writeBases(root, bases);
  }
}

function wordOf(step: Step, remote: ReadonlyMap<string, Remote>): string {
  if (step.act === "remove") return "remove";
  return remote.has(step.path) ? "change" : "create";
}
