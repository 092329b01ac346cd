// `parley docs edit`: opens a document in an editor. If somebody else changed it meanwhile, the edited text is kept in a file.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

import { errorMessage, documentPathProblem } from "@parley/contracts";

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { ChangedAnswer, fetchDocument, isConflict, isMissing } from "../docs/answers.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { print, type Io } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [path] = positionals;
  if (path === undefined) throw new UsageError("Name a document: parley docs edit MEMORY.md");
  const problem = documentPathProblem(path);
  if (problem !== null) throw new UsageError(`"${path}" is not a document path: ${problem}.`);
  const gateway = new Gateway(findTarget(values, io));
  const before = await fetchDocument(gateway, path).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  const folder = mkdtempSync(join(tmpdir(), "parley-edit-"));
  const file = join(folder, basename(path));
  writeFileSync(file, before?.content ?? "");
  await openEditor(file, io);
  const content = readFileSync(file, "utf8");
  if (content === (before?.content ?? "")) {
    rmSync(folder, { recursive: true });
    print(io, `${path} is unchanged.`);
    return exitCodes.ok;
  }
  const change = { path, content, expectedVersion: before?.version ?? 0 };
  const { document } = await gateway.post("/api/documents/put", change, ChangedAnswer).catch((error: unknown) => {
    const words = errorMessage(error);
    throw new CliError(isConflict(error) ? `${words}. Nothing was written.` : words, {
      fix: `Your text is kept in ${file}.`,
      cause: error,
    });
  });
  rmSync(folder, { recursive: true });
  print(io, `${path} is now at version ${document.version}.`);
  return exitCodes.ok;
};

/** Runs $VISUAL or $EDITOR, which may contain options, or vi. Throws CliError when it fails. */
async function openEditor(file: string, io: Io): Promise<void> {
  const editor = io.env["VISUAL"] || io.env["EDITOR"] || "vi";
  const child = spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit", cwd: io.cwd });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0)
    throw new CliError(`The editor (${editor}) exited with ${code ?? "a signal"}: nothing was written.`, {
      fix: `Your text is kept in ${file}. Set EDITOR to use another editor.`,
    });
}
