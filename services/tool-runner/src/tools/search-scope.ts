// Shared by `glob` and `grep`: opens the path to search, runs the search with its own deadline, and formats notices about limits.
import { join } from "node:path";
import { documentsAt, orErrorText, noSuchDocument, type DocumentAccess } from "./document-access.ts";
import { documentNames, isDocumentFolder, pathInside } from "../documents/paths.ts";
import type { StoredDocument } from "../documents/client.ts";
import type { SearchAnswer, SearchJob } from "../search/job.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { openDirectory, openFile } from "../workspace/workspace.ts";

/** A longer search has a backtracking pattern or too large a tree. */
const searchDeadlineMs = 20_000;

type Question = Omit<SearchJob, "fd" | "isDirectory" | "path" | "prefix" | "documents" | "hidden" | "denied">;

type Found = Extract<SearchAnswer, { status: "found" }> & {
  /** The documents whose content was searched; none when only names were searched. */
  documents: readonly StoredDocument[];
};

/** Documents to search; `read` is empty when only names are searched. */
interface Searched {
  named: SearchJob["documents"];
  read: readonly StoredDocument[];
}

/** The search result, or the tool result that explains the failure to the model. */
export async function openScope(path: string, question: Question, context: ToolContext): Promise<Found | ToolOutput> {
  const access = documentsAt(path, context);
  if (access === undefined) return searchDisk(path, question, { named: [], read: [] }, context);
  return orErrorText(async () => {
    const documents = await documentsBelow(access, question.kind === "grep");
    if (access.path === "") return searchDisk(path, question, documents, context);
    const { named } = documents;
    const isDirectory = !named.some(({ path: found }) => found === access.path);
    if (isDirectory && named.length === 0 && !isDocumentFolder(access.path)) return noSuchDocument(access.path);
    const place = { fd: null, isDirectory, path: "", prefix: access.path, hidden: [] };
    return ask({ ...question, ...place }, documents, context);
  });
}

/** The documents at or below a path. */
async function documentsBelow({ documents, path }: DocumentAccess, texts: boolean): Promise<Searched> {
  const listed = (await documents.list()).filter(
    (each) => each.path === path || pathInside(each.path, path) !== undefined,
  );
  if (!texts) return { named: listed.map((each) => ({ path: each.path, content: "" })), read: [] };
  const read = await documents.readAll(listed);
  return { named: read.map((each) => ({ path: each.path, content: each.content })), read };
}

/** Searches the disk and, in the root, the documents: files on disk with the name of a document are hidden. */
async function searchDisk(
  path: string,
  question: Question,
  documents: Searched,
  context: ToolContext,
): Promise<Found | ToolOutput> {
  await using place = await context.workspace.resolve(path);
  const isDirectory = place.stats?.isDirectory() ?? false;
  const { handle } = isDirectory ? await openDirectory(place) : await openFile(place);
  const inRoot = place.relative === "." && context.documents !== null;
  try {
    return await ask(
      {
        ...question,
        fd: handle.fd,
        isDirectory,
        path: join(place.directory.path, place.name),
        prefix: place.relative === "." ? "" : place.relative,
        hidden: inRoot ? [...documentNames] : [],
      },
      documents,
      context,
    );
  } finally {
    await handle.close();
  }
}

async function ask(
  job: Omit<SearchJob, "documents" | "denied">,
  { named, read }: Searched,
  context: ToolContext,
): Promise<Found | ToolOutput> {
  const deadline = AbortSignal.timeout(searchDeadlineMs);
  try {
    const answer = await context.searcher.run(
      { ...job, documents: named, denied: context.denyPaths ?? [] },
      AbortSignal.any([context.signal, deadline]),
    );
    return answer.status === "found"
      ? { ...answer, documents: read }
      : failure(`The pattern is invalid: ${answer.message}`);
  } catch (error) {
    if (!deadline.aborted || context.signal.aborted) throw error;
    return failure(
      `The search was stopped after ${searchDeadlineMs / 1_000} seconds. Search a smaller part of the workspace, or simplify the pattern: nested repetitions such as (a+)+ may never finish.`,
    );
  }
}

export function notices(answer: { truncated: boolean; unreadable: number }, maxHits: number): string[] {
  const lines: string[] = [];
  if (answer.truncated) lines.push(`[Truncated: only the first ${maxHits} are shown. Narrow the search.]`);
  if (answer.unreadable > 0) lines.push(`[${answer.unreadable} files or directories could not be read.]`);
  return lines;
}
