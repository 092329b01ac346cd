// What `glob` and `grep` share: opens the place to search, runs the search under a deadline of its own, and words the limits.
import { join } from "node:path";
import type { SearchAnswer, SearchJob } from "../search/job.ts";
import { failure, type ToolContext, type ToolOutput } from "../tool.ts";
import { openDirectory, openFile } from "../workspace/workspace.ts";

/** A search that takes longer has a pattern that backtracks, or a tree to be narrowed down. */
const searchDeadlineMs = 20_000;

type Question = Omit<SearchJob, "fd" | "isDirectory" | "path" | "prefix">;

/** The answer of the search, or the result that tells the model why there is none. */
export async function searchPlace(
  path: string,
  question: Question,
  context: ToolContext,
): Promise<Extract<SearchAnswer, { status: "found" }> | ToolOutput> {
  await using place = await context.workspace.resolve(path);
  const isDirectory = place.stats?.isDirectory() ?? false;
  const { handle } = isDirectory ? await openDirectory(place) : await openFile(place);
  const deadline = AbortSignal.timeout(searchDeadlineMs);
  try {
    const answer = await context.searcher.run(
      {
        ...question,
        fd: handle.fd,
        isDirectory,
        path: join(place.directory.path, place.name),
        prefix: place.relative === "." ? "" : place.relative,
      },
      AbortSignal.any([context.signal, deadline]),
    );
    return answer.status === "found" ? answer : failure(`The pattern cannot be used: ${answer.message}`);
  } catch (error) {
    if (!deadline.aborted || context.signal.aborted) throw error;
    return failure(
      `The search was stopped after ${searchDeadlineMs / 1_000} seconds. Search a smaller part of the workspace, or simplify the pattern: nested repetitions such as (a+)+ take for ever.`,
    );
  } finally {
    await handle.close();
  }
}

export function notices(answer: { truncated: boolean; unreadable: number }, maxHits: number): string[] {
  const lines: string[] = [];
  if (answer.truncated)
    lines.push(`[Truncated: the first ${maxHits} are shown, there are more. Narrow the search down.]`);
  if (answer.unreadable > 0) lines.push(`[${answer.unreadable} files or directories could not be read.]`);
  return lines;
}
