// Copies documents between the store and a folder. Neither side overwrites changes of the other unless it is forced to.

import { resolve } from "node:path";

import { documentPathProblem } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { CliError, exitCodes, note, print, type Io } from "../io/io.ts";
import { problemLine } from "../tables/lists.ts";
import { fetchDocument, isConflict } from "./documents.ts";
import {
  planPull,
  planPush,
  readFolder,
  removeLocal,
  writeBases,
  writeLocal,
  type Folder,
  type Remote,
  type Step,
} from "./folder.ts";

/** Downloads remote changes. Without `force`, skips files with conflicts and then returns exitCodes.error. */
export async function pull(gateway: Gateway, given: string, force: boolean, io: Io): Promise<number> {
  const root = resolve(io.cwd, given);
  const answer = await gateway.run(api.documents);
  // A malicious gateway must not make the command write outside the folder.
  const documents = answer.documents.filter(({ path }) => documentPathProblem(path) === null);
  const { documents: local, bases } = readFolder(root);
  const remote = new Map(documents.map((document) => [document.path, document]));
  const kept = { ...bases };
  let conflicts = 0;
  const steps = planPull({ local, bases, remote });
  if (steps.length === 0)
    note(io, documents.length === 0 ? "There are no documents yet." : "Nothing to pull: the folder is up to date.");
  for (const step of steps) {
    if (step.act === "conflict" && !force) {
      conflicts++;
      note(io, `left: ${step.path} ${step.reason}`);
    } else if (remote.has(step.path)) {
      const { content, version, sha256 } = await fetchDocument(gateway, step.path);
      writeLocal(root, step.path, content);
      kept[step.path] = { version, sha256 };
      print(io, `pulled   ${step.path} (version ${version})`);
    } else {
      removeLocal(root, step.path);
      delete kept[step.path];
      print(io, `removed  ${step.path}`);
    }
  }
  // Equal on both sides: record that version as the base.
  for (const { path, version, sha256 } of documents)
    if (local.get(path)?.sha256 === sha256) kept[path] = { version, sha256 };
  writeBases(root, kept);
  if (conflicts === 0) return exitCodes.ok;
  note(io, "Files with local changes were left; --force replaces them with the store's text.");
  return exitCodes.error;
}

export interface PushOptions {
  /** Overwrite newer versions in the store. */
  readonly force: boolean;
  readonly dryRun: boolean;
  /** Remove documents whose file is gone. */
  readonly remove: boolean;
}

/**
 * Uploads local changes; returns the exit code. Without `force`, conflicts found when planning abort before any write. A conflict
 * that arises later stops half-way. Both throw CliError; a dry run only reports.
 */
export async function push(
  gateway: Gateway,
  given: string,
  { force, dryRun, remove }: PushOptions,
  io: Io,
): Promise<number> {
  const root = resolve(io.cwd, given);
  const folder = readFolder(root);
  for (const line of folder.ignored) note(io, `ignored: ${line}`);
  const { documents } = await gateway.run(api.documents);
  const remote = new Map(documents.map((document) => [document.path, document]));
  const steps = planPush({ local: folder.documents, bases: folder.bases, remote }, { remove });
  const conflicts = steps.filter((step) => step.act === "conflict");
  for (const { path, reason } of conflicts) note(io, `${force ? "forced" : "refused"}: ${path} ${reason}`);
  if (conflicts.length > 0 && !force && !dryRun) {
    throw new CliError("Nothing was pushed: the store has changes that your folder does not have.", {
      fix: "Fetch them with parley docs pull, or overwrite them with --force (older versions are kept).",
    });
  }
  if (steps.length === 0) print(io, "The store is up to date.");
  if (!dryRun) {
    await write(gateway, root, folder, remote, steps, io);
    await warnOfSkills(gateway, steps, io);
    return exitCodes.ok;
  }
  for (const { act, path } of steps) {
    if (act === "conflict") continue;
    print(io, `would ${act === "remove" ? "remove" : remote.has(path) ? "change" : "create"} ${path}`);
  }
  return conflicts.length > 0 && !force ? exitCodes.error : exitCodes.ok;
}

/** Names the pushed skills that are not loaded, with the reason. */
async function warnOfSkills(gateway: Gateway, steps: readonly Step[], io: Io): Promise<void> {
  const pushed = steps.map(({ path }) => path).filter((path) => path.startsWith("skills/"));
  if (pushed.length === 0) return;
  // Without an agent-core the push has succeeded all the same.
  const { problems } = await gateway.run(api.skills).catch(() => ({ problems: [] }));
  for (const problem of problems) {
    const concerned = pushed.some((path) => path === problem.path || path.startsWith(`${problem.path}/`));
    if (concerned) note(io, `warning: ${problemLine(problem)}`);
  }
}

async function write(
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
      const { document } = await (local === undefined
        ? gateway.run(api.deleteDocument, target)
        : gateway.run(api.putDocument, { ...target, content: local.content }));
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
