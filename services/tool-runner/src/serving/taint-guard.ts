// Taint of files around one tool call: what a tainted call writes is recorded, and a result that shows recorded files is flagged as
// untrusted. The tools do not know of it; what they touch is seen by the places that they resolve.
import type { ToolDescriptor } from "@parley/contracts";
import type { ToolOutput } from "../tool.ts";
import { untrusted } from "../web/untrusted.ts";
import type { TaintedFiles } from "../workspace/tainted-files.ts";
import type { Place, Workspace } from "../workspace/workspace.ts";

export interface GuardedCall {
  /** Undefined: there is no such tool. */
  descriptor: Pick<ToolDescriptor, "name" | "effects"> | undefined;
  workspace: Workspace;
  /** The turn is tainted. */
  tainted: boolean;
}

/** What the tool is given instead of the workspace and the taint of the call. */
export interface Ground {
  workspace: Workspace;
  tainted: boolean;
  /** What the call started goes on until then. */
  outlives: (end: Promise<unknown>) => void;
}

type Run = (ground: Ground) => Promise<ToolOutput>;

/** Where locks are, in the way of each file that is written. */
const internal = ".parley/locks/";
const source = "a file that was written after reading untrusted content";

/** `files`: undefined where no taint of files is recorded. Rejects when the records cannot be read or written. */
export async function withTaint(files: TaintedFiles | undefined, call: GuardedCall, run: Run): Promise<ToolOutput> {
  if (files === undefined || call.descriptor === undefined) return run(plain(call));
  const { name, effects } = call.descriptor;
  // What an MCP server does is not seen here, and its results are untrusted as they are.
  if (name.startsWith("mcp_")) return run(plain(call));
  if (effects.includes("executes")) return runCommand(files, call, run);
  if (effects.includes("writes_files") || effects.includes("reads_files"))
    return runFileTool(files, call, call.descriptor, run);
  return run(plain(call));
}

function plain({ workspace, tainted }: GuardedCall): Ground {
  return { workspace, tainted, outlives: () => undefined };
}

/** A command can read every file of the workspace and copy it: where there is a tainted file, its output and what it changes are. */
async function runCommand(files: TaintedFiles, call: GuardedCall, run: Run): Promise<ToolOutput> {
  const readable = await files.any();
  const tainted = call.tainted || readable;
  const command = tainted ? await files.begin() : undefined;
  const left: Promise<unknown>[] = [];
  const end = async () => {
    await Promise.allSettled(left);
    await command?.end();
  };
  try {
    const output = await run({ workspace: call.workspace, tainted, outlives: (until) => left.push(until) });
    return readable ? { ...output, untrusted: true } : output;
  } finally {
    // A failure leaves the command recorded as running, which is the safe side.
    if (left.length > 0) void end().catch(() => undefined);
    else await end();
  }
}

async function runFileTool(
  files: TaintedFiles,
  call: GuardedCall,
  { name, effects }: NonNullable<GuardedCall["descriptor"]>,
  run: Run,
): Promise<ToolOutput> {
  const writes = effects.includes("writes_files");
  // A tool that writes untrusted content into a file taints the file, also in a turn that is not tainted yet.
  const tainted = call.tainted || effects.includes("reads_untrusted");
  const seen = new Set<string>();
  const written: string[] = [];
  const marked: string[] = [];
  let shows = false;
  const checks: Promise<void>[] = [];
  const check = async (place: Place) => {
    if (await isTainted(files, place)) shows = true;
  };
  const workspace = call.workspace.observed(async (place) => {
    const { relative: path, stats } = place;
    if (path.startsWith(internal) || seen.has(path)) return;
    seen.add(path);
    if (stats === null && !tainted) await files.clear(path);
    // A file is marked before it is written, so a check that starts before the read may end after it.
    else if (writes) await check(place);
    else checks.push(handled(check(place)));
    if (!writes || !tainted || stats?.isDirectory() === true) return;
    // Before it is written: a crash in between leaves a file that counts as tainted.
    written.push(path);
    if (await files.mark(path)) marked.push(path);
  });
  const output = await run({ ...plain(call), workspace });
  await Promise.all(checks);
  if (output.isError) for (const path of marked) await files.clear(path);
  // Another call may have ended the record of a file that was not there yet.
  else for (const path of written) await files.mark(path);
  if (name === "write") {
    if (!tainted && !output.isError) for (const path of seen) await files.clear(path);
    return output;
  }
  if (output.files !== undefined) shows = await anyTainted(files, output.files, call.workspace);
  if (!shows || output.isError || !effects.includes("reads_files")) return output;
  return { ...output, content: untrusted(source, output.content), untrusted: true };
}

/** A promise that is awaited later: its rejection until then is not an unhandled one. */
function handled(work: Promise<void>): Promise<void> {
  work.catch(() => undefined);
  return work;
}

async function isTainted(files: TaintedFiles, { relative: path, stats }: Place): Promise<boolean> {
  return stats?.isDirectory() === true ? files.inDirectory(path) : files.has(path, stats);
}

async function anyTainted(files: TaintedFiles, paths: ReadonlySet<string>, workspace: Workspace): Promise<boolean> {
  for (const path of paths) {
    await using place = await workspace.resolve(path).catch(() => null);
    if (place !== null && (await isTainted(files, place))) return true;
  }
  return false;
}
