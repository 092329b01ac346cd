// Shared by `glob` and `grep`: opens the path to search, runs the search with its own deadline, and formats notices about limits.
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { documentsAt, orErrorText, noSuchDocument, type DocumentAccess } from "./document-access.ts";
import { documentNames, isDocumentFolder, pathInside } from "../documents/paths.ts";
import type { StoredDocument } from "../documents/client.ts";
import { writeSearchFolder } from "../documents/search-folder.ts";
import type { SearchQuery } from "../search/arguments.ts";
import type { SearchAnswer, SearchTarget } from "../search/search.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { sandboxRoot } from "../workspace/paths.ts";
import { inDirectory, openDirectory, openFile } from "../workspace/directory-handles.ts";

/** A longer search has too large a tree, or a pattern with look-around that backtracks. */
const searchDeadlineMs = 20_000;

type Question = Omit<SearchQuery, "isDenied">;

type Found = Extract<SearchAnswer, { status: "found" }> & {
  /** The documents whose content was searched; none when only names were searched. */
  documents: readonly StoredDocument[];
};

/** The search result, or the tool result that explains the failure to the model. */
export async function openScope(path: string, question: Question, context: ToolContext): Promise<Found | ToolOutput> {
  const { glob, pattern } = question;
  if (`${glob ?? ""}${pattern ?? ""}`.includes("\0")) return failure("The pattern contains a NUL byte.");
  const access = documentsAt(path, context);
  if (access === undefined) return searchDisk(path, question, [], context);
  return orErrorText(async () => {
    const { named, read } = await documentsBelow(access, question.pattern !== null, context);
    await using folder = await writeSearchFolder(named);
    const withDocuments = (found: Found | ToolOutput) =>
      "hits" in found ? { ...found, documents: read, unreadable: found.unreadable + folder.missing } : found;
    if (access.path === "")
      return withDocuments(await searchDisk(path, question, [targetIn(folder.path, "")], context));
    const isDirectory = !named.some((each) => each.path === access.path);
    if (isDirectory && named.length === 0 && !isDocumentFolder(access.path)) return noSuchDocument(access.path);
    const below = isDirectory ? access.path : dirname(access.path);
    const target = targetIn(folder.path, below === "." ? "" : below);
    // The folder of documents exists even while it is empty.
    await mkdir(target.directory, { recursive: true });
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
    const inside = { folder: context.workspace.root, directory: sandboxRoot };
    return await ask(question, [{ directory: "/", file: file.handle, inside, prefix, hidden: [] }], context);
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
  const query = { ...question, isDenied: workspace.denied };
  try {
    const answer = await searcher(query, targets, AbortSignal.any([signal, deadline]));
    if (answer.status === "refused") return failure(`The pattern is invalid: ${answer.message}`);
    if (answer.status === "line_too_long") {
      return failure("A line of the file is too long to search. Use exec with a program such as fold, cut or tr.");
    }
    return { ...answer, documents: [] };
  } catch (error) {
    if (!deadline.aborted || signal.aborted) throw error;
    return failure(
      `The search was stopped after ${searchDeadlineMs / 1_000} seconds. Search a smaller part of the workspace, or simplify the pattern.`,
    );
  }
}

/** What the model must know about the result: what is missing from it, and where line numbers differ. */
export function notices(answer: Found, maxHits: number): string[] {
  const { truncated, unreadable, withNul, maxFileBytes } = answer;
  const lines: string[] = [];
  if (truncated) lines.push(`[Truncated: only the first ${maxHits} are shown. Narrow the search.]`);
  if (unreadable > 0) lines.push(`[${unreadable} files or directories could not be read.]`);
  if (maxFileBytes !== undefined) {
    const size = `${Math.floor(maxFileBytes / 1024 / 1024)} MiB`;
    lines.push(`[Files above ${size} were not searched: a line in one of them is too long.]`);
  }
  if (withNul > 0) {
    lines.push(`[${withNul} files contain NUL bytes; each counts as the end of a line in their line numbers.]`);
  }
  return lines;
}
