// Shared by `glob` and `grep`: opens the path to search, runs the search with its own deadline, and formats notices about limits.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { documentsAt, orErrorText, noSuchDocument, type DocumentAccess } from "./document-access.ts";
import { documentNames, isDocumentFolder, pathInside } from "../documents/paths.ts";
import type { StoredDocument } from "../documents/client.ts";
import type { SearchAnswer, SearchQuery, SearchTarget } from "../search/search.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { sandboxRoot } from "../workspace/paths.ts";
import { inDirectory, openDirectory, openFile } from "../workspace/places.ts";

/** A longer search has too large a tree, or a pattern with look-around that backtracks. */
const searchDeadlineMs = 20_000;

type Question = Omit<SearchQuery, "isDenied">;

type Found = Extract<SearchAnswer, { status: "found" }> & {
  /** The documents whose content was searched; none when only names were searched. */
  documents: readonly StoredDocument[];
};

/** The search result, or the tool result that explains the failure to the model. */
export async function openScope(path: string, question: Question, context: ToolContext): Promise<Found | ToolOutput> {
  const access = documentsAt(path, context);
  if (access === undefined) return searchDisk(path, question, [], context);
  return orErrorText(async () => {
    const { named, read } = await documentsBelow(access, question.pattern !== null, context);
    await using folder = await writeDocuments(named);
    const withDocuments = (found: Found | ToolOutput) =>
      "hits" in found ? { ...found, documents: read, unreadable: found.unreadable + folder.missing } : found;
    if (access.path === "")
      return withDocuments(await searchDisk(path, question, [targetIn(folder.path, "")], context));
    const isDirectory = !named.some((each) => each.path === access.path);
    if (isDirectory && named.length === 0 && !isDocumentFolder(access.path)) return noSuchDocument(access.path);
    const below = isDirectory ? access.path : dirname(access.path);
    const target = targetIn(folder.path, below === "." ? "" : below);
    return withDocuments(await ask(question, [target], context));
  });
}

/** Documents at or below a path that the call may see; `read`: none when only names are searched. */
async function documentsBelow({ documents, path }: DocumentAccess, texts: boolean, { workspace }: ToolContext) {
  const listed = (await documents.list()).filter(
    (each) => (each.path === path || pathInside(each.path, path) !== undefined) && !workspace.isDenied(each.path),
  );
  if (!texts) return { named: listed.map((each) => ({ path: each.path, content: "" })), read: [] };
  const read = await documents.readAll(listed);
  return { named: read, read };
}

/** Writes documents into a private folder, which the search program reads; disposal removes it. */
async function writeDocuments(documents: readonly { path: string; content: string }[]) {
  const path = await mkdtemp(join(tmpdir(), "parley-search-"));
  let missing = 0;
  for (const { path: name, content } of documents) {
    try {
      await mkdir(dirname(join(path, name)), { recursive: true });
      await writeFile(join(path, name), content);
    } catch {
      // A name that no file system can hold, such as one that is also a folder of other documents.
      missing += 1;
    }
  }
  return { path, missing, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function targetIn(folder: string, prefix: string): SearchTarget {
  const inside = { folder, directory: join(sandboxRoot, prefix) };
  return { directory: join(folder, prefix), inside, prefix, hidden: [] };
}

/** Searches the documents and the disk: in the root, files on disk with the name of a document are hidden. */
async function searchDisk(
  path: string,
  question: Question,
  documents: readonly SearchTarget[],
  context: ToolContext,
): Promise<Found | ToolOutput> {
  await using place = await context.workspace.resolve(path);
  const { relative } = place;
  const prefix = relative === "." ? "" : relative;
  if (place.stats?.isDirectory() !== true && question.pattern !== null) {
    await using file = await openFile(place);
    return await ask(question, [{ directory: "/", file: file.handle, prefix, hidden: [] }], context);
  }
  await using directory = await openDirectory(place);
  const target = {
    directory: inDirectory(directory, "."),
    inside: { folder: context.workspace.root, directory: join(sandboxRoot, prefix) },
    prefix,
    hidden: relative === "." && context.documents !== null ? [...documentNames] : [],
  };
  return await ask(question, [...documents, target], context);
}

async function ask(
  question: Question,
  targets: readonly SearchTarget[],
  { searcher, workspace, signal }: ToolContext,
): Promise<Found | ToolOutput> {
  const deadline = AbortSignal.timeout(searchDeadlineMs);
  const query = { ...question, isDenied: (path: string) => workspace.isDenied(path) };
  try {
    const answer = await searcher(query, targets, AbortSignal.any([signal, deadline]));
    return answer.status === "found"
      ? { ...answer, documents: [] }
      : failure(`The pattern is invalid: ${answer.message}`);
  } catch (error) {
    if (!deadline.aborted || signal.aborted) throw error;
    return failure(
      `The search was stopped after ${searchDeadlineMs / 1_000} seconds. Search a smaller part of the workspace, or simplify the pattern.`,
    );
  }
}

export function notices(answer: { truncated: boolean; unreadable: number }, maxHits: number): string[] {
  const lines: string[] = [];
  if (answer.truncated) lines.push(`[Truncated: only the first ${maxHits} are shown. Narrow the search.]`);
  if (answer.unreadable > 0) lines.push(`[${answer.unreadable} files or directories could not be read.]`);
  return lines;
}
