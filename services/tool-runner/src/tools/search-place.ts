// What `glob` and `grep` share: opens the place to search, runs the search under a deadline of its own, and words the limits.
import { join } from "node:path";
import { documentsAt, inWords, noSuchDocument, type DocumentAccess } from "../documents/access.ts";
import { documentNames, isDocumentFolder, pathInside } from "../documents/paths.ts";
import type { StoredDocument } from "../documents/over-bus.ts";
import type { SearchAnswer, SearchJob } from "../search/job.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool.ts";
import { openDirectory, openFile } from "../workspace/workspace.ts";

/** A search that takes longer has a pattern that backtracks, or a tree to be narrowed down. */
const searchDeadlineMs = 20_000;

type Question = Omit<SearchJob, "fd" | "isDirectory" | "path" | "prefix" | "documents" | "hidden" | "denied">;

type Found = Extract<SearchAnswer, { status: "found" }> & {
  /** Those that were looked into; none where only names were looked at. */
  documents: readonly StoredDocument[];
};

/** Before it is searched: without texts where only names are looked at. */
interface Searched {
  named: SearchJob["documents"];
  read: readonly StoredDocument[];
}

/** The answer of the search, or the result that tells the model why there is none. */
export async function searchPlace(path: string, question: Question, context: ToolContext): Promise<Found | ToolOutput> {
  const access = documentsAt(path, context);
  if (access === undefined) return searchDisk(path, question, { named: [], read: [] }, context);
  return inWords(async () => {
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

/** Searches the disk, and in the root the documents with it: what the disk has by their names is hidden. */
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
      : failure(`The pattern cannot be used: ${answer.message}`);
  } catch (error) {
    if (!deadline.aborted || context.signal.aborted) throw error;
    return failure(
      `The search was stopped after ${searchDeadlineMs / 1_000} seconds. Search a smaller part of the workspace, or simplify the pattern: nested repetitions such as (a+)+ take for ever.`,
    );
  }
}

export function notices(answer: { truncated: boolean; unreadable: number }, maxHits: number): string[] {
  const lines: string[] = [];
  if (answer.truncated)
    lines.push(`[Truncated: the first ${maxHits} are shown, there are more. Narrow the search down.]`);
  if (answer.unreadable > 0) lines.push(`[${answer.unreadable} files or directories could not be read.]`);
  return lines;
}
