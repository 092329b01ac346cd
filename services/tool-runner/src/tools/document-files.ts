// The file tools for documents: the same results and texts as for files on disk.
import { documentPathProblem, markUntrusted } from "@parley/contracts";
import { pluralize } from "@parley/kit";
import { orErrorText, noSuchDocument, writerOf, type DocumentAccess } from "./document-access.ts";
import type { Edited } from "../documents/documents.ts";
import type { StoredDocument } from "../documents/client.ts";
import { entriesOf, isDocumentFolder, type Entry } from "../documents/paths.ts";
import { hasUntrusted } from "../documents/untrusted-lines.ts";
import { failure, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { displayPath } from "../workspace/paths.ts";

export async function writeDocument(
  { documents, path }: DocumentAccess,
  content: string,
  context: ToolContext,
): Promise<ToolOutput> {
  const problem = documentPathProblem(path);
  if (problem !== null) return failure(`"${displayPath(path)}" cannot be written: ${problem}.`);
  return orErrorText(async () => {
    const change = await documents.write(path, content, writerOf(context));
    if (change.status === "conflict") return failure(`"${path}" was changed while it was being written; try again.`);
    const { version } = change.document;
    const lines = content === "" ? 0 : content.split("\n").length - (content.endsWith("\n") ? 1 : 0);
    const verb = change.status === "unchanged" ? "Unchanged" : version === 1 ? "Created" : "Replaced";
    return success(
      `${verb} "${path}": ${pluralize(lines, "line")}, ${Buffer.byteLength(content)} bytes, version ${version}.`,
    );
  });
}

/**
 * `change` computes the new text; it is called again after a concurrent write. `quotes`: the answer quotes parts of the text,
 * which may be untrusted content.
 */
export async function editDocument(
  { documents, path }: DocumentAccess,
  { change, quotes }: { change: (text: string) => Promise<Edited<ToolOutput>>; quotes: boolean },
): Promise<ToolOutput> {
  return orErrorText(async () => {
    let seen: StoredDocument | undefined;
    const decide = (text: string, document: StoredDocument) => {
      seen = document;
      return change(text);
    };
    const result = await documents.edit(path, decide);
    if (result.status === "answered") {
      const { answer } = result;
      if (!quotes || seen === undefined || !(await hasUntrusted(documents, seen))) return answer;
      return { ...answer, content: markUntrusted([{ shown: answer.content, untrusted: true }]).join("\n") };
    }
    if (result.status === "missing") return noSuchDocument(path);
    return failure(`"${path}" was not changed: concurrent writes kept changing it. Try again.`);
  });
}

/** The entries that `ls` lists for a document or a folder of documents; undefined when neither exists. */
export async function listDocuments({ documents, path }: DocumentAccess): Promise<Entry[] | undefined> {
  const all = await documents.list();
  const one = all.find((document) => document.path === path);
  if (one !== undefined) return [{ name: path, isFolder: false, bytes: one.bytes }];
  const entries = entriesOf(all, path);
  return entries.length === 0 && path !== "" && !isDocumentFolder(path) ? undefined : entries;
}
