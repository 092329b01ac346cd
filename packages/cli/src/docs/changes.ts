// Changes of one document: restoring a version, marking lines as trusted, editing. Each applies only to the version that the person saw.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

import { documentPathProblem, errorMessage } from "@parley/contracts";
import { pluralize } from "@parley/kit";

import { asTyped } from "../io/command-name.ts";
import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { canAsk, CliError, confirm, note, painter, print, UsageError, type Io } from "../io/io.ts";
import { fetchAuthored, fetchDocument, fetchNewest, isConflict, isMissing } from "./documents.ts";
import { isOwners, untrustedLines, vouchText } from "./trust.ts";

/** Writes an old text as a new version; its lines keep their authors of that time. */
export async function restore(gateway: Gateway, path: string, version: number, io: Io): Promise<void> {
  const newest = await fetchNewest(gateway, path);
  const old = await fetchDocument(gateway, path, version);
  if (old.deleted)
    throw new CliError(`Version ${version} of ${path} is the removal: it has no text.`, {
      fix: `parley docs restore ${path} --version ${version - 1} restores the text before it.`,
    });
  const { status, document } = await gateway
    .run(api.restoreDocument, { path, version, expectedVersion: newest.version })
    .catch((error: unknown) => {
      if (!isConflict(error)) throw error;
      throw new CliError(`${error.message}. Nothing was written.`, {
        fix: `Review the change with parley docs diff ${path}, then restore again.`,
        cause: error,
      });
    });
  if (status === "unchanged") return print(io, `${path} already has the text of version ${version}.`);
  print(io, `${path} has the text of version ${version} again, as version ${document.version}.`);
  const untrusted = untrustedLines(await fetchAuthored(gateway, path, document.version));
  if (untrusted.length === 0) return;
  note(
    io,
    `It contains ${pluralize(untrusted.length, "line")} written from untrusted content, which stay untrusted. ${asTyped("parley docs vouch")} ${path} shows them and marks them as trusted; ${asTyped("parley docs edit")} ${path} changes them.`,
  );
}

/** Marks all lines as trusted after a person has read them: the version that they name, or the newest one, which they are shown. */
export async function vouch(gateway: Gateway, path: string, given: number | undefined, io: Io): Promise<void> {
  if (given === undefined && !canAsk(io))
    throw new UsageError(
      "Without a terminal, name the version that you have read with --version.",
      `parley docs show ${path} --authors prints the text, the author of each line, and the version.`,
    );
  const nothingToDo = `Nothing to do: all lines of ${path} are already yours.`;
  let read = given;
  try {
    if (read === undefined) {
      const document = await fetchAuthored(gateway, path);
      if (isOwners(document)) return print(io, nothingToDo);
      print(io, vouchText(document, painter(io.stdout, io.env)));
      if (!(await confirm(io, `Mark all lines of version ${document.version} as trusted?`)))
        return print(io, "Nothing was marked as trusted.");
      read = document.version;
    }
    const { status, document } = await gateway.run(api.vouchDocument, { path, expectedVersion: read });
    if (status === "unchanged") print(io, nothingToDo);
    else print(io, `All lines of ${path} are now yours, as version ${document.version}.`);
  } catch (error) {
    if (isMissing(error))
      throw new CliError(`There is no document ${path}.`, {
        fix: "parley docs list shows all documents.",
        cause: error,
      });
    if (!isConflict(error)) throw error;
    throw new CliError(`${error.message}. Nothing was marked as trusted.`, {
      fix: `Review the change with parley docs diff ${path} --from ${read ?? 0}, then run vouch again.`,
      cause: error,
    });
  }
}

/** Opens a document in an editor. If somebody else changed it meanwhile, the edited text is kept in a file. */
export async function edit(gateway: Gateway, path: string, io: Io): Promise<void> {
  const problem = documentPathProblem(path);
  if (problem !== null) throw new UsageError(`"${path}" is not a document path: ${problem}.`);
  const before = await fetchDocument(gateway, path).catch((error: unknown) => {
    if (isMissing(error)) return { content: "", version: 0 };
    throw error;
  });
  const folder = mkdtempSync(join(tmpdir(), "parley-edit-"));
  const file = join(folder, basename(path));
  writeFileSync(file, before.content);
  await openEditor(file, io);
  const content = readFileSync(file, "utf8");
  if (content === before.content) print(io, `${path} is unchanged.`);
  else {
    const change = { path, content, expectedVersion: before.version };
    const { document } = await gateway.run(api.putDocument, change).catch((error: unknown) => {
      const reason = errorMessage(error);
      throw new CliError(isConflict(error) ? `${reason}. Nothing was written.` : reason, {
        fix: `Your text is kept in ${file}.`,
        cause: error,
      });
    });
    print(io, `${path} is now at version ${document.version}.`);
  }
  rmSync(folder, { recursive: true });
}

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
