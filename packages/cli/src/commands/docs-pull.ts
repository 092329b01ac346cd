// `parley docs pull`: copies the store's documents into a folder. Local changes are kept unless --force is given.

import { resolve } from "node:path";

import { documentPathProblem } from "@parley/contracts";

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { DocumentsAnswer, fetchDocument } from "../docs/answers.ts";
import { readFolder, removeLocal, writeBases, writeLocal } from "../docs/folder.ts";
import { planPull } from "../docs/plan.ts";
import { UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [given] = positionals;
  if (given === undefined) throw new UsageError("Name a folder: parley docs pull ./docs");
  const root = resolve(io.cwd, given);
  const gateway = new Gateway(findTarget(values, io));
  const answer = await gateway.get("/api/documents", DocumentsAnswer);
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
    const isTaken = step.act !== "conflict" || values.has("force");
    if (!isTaken) {
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
};
