// A workspace in a folder of its own, with something outside that must never be seen or touched.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noCheckpoint } from "../../src/checkpoints/keeper.ts";
import { createRegistry, runTool } from "../../src/registry.ts";
import { createSearcher, type Searcher } from "../../src/search/search.ts";
import type { Tool, ToolOutput } from "../../src/tool.ts";
import type { RoomRules } from "../../src/workspace/room.ts";
import { openWorkspace, type Workspace } from "../../src/workspace/workspace.ts";

export const secret = "the secret outside";

export interface Ground extends AsyncDisposable {
  workspace: Workspace;
  searcher: Searcher;
  /** The workspace's folder. */
  inside: string;
  /** A folder beside it, with `secret.txt`. */
  outside: string;
  /** Runs a tool as a call would; a thrown bug fails the test. */
  call(tool: Tool, args: unknown, signal?: AbortSignal, sessionId?: string, tainted?: boolean): Promise<ToolOutput>;
}

/** `rules`: how much the workspace may hold; left out: no limit. */
/** `disk`: a folder on the disk that it is to be on. */
export async function makeGround(rules?: RoomRules, disk = tmpdir()): Promise<Ground> {
  const base = await mkdtemp(join(disk, "parley-ground-"));
  const inside = join(base, "inside");
  const outside = join(base, "outside");
  await mkdir(outside);
  await writeFile(join(outside, "secret.txt"), secret);
  const workspace = await openWorkspace(inside, rules);
  const searcher = createSearcher();
  let calls = 0;
  return {
    workspace,
    searcher,
    inside,
    outside,
    call: async (tool, args, signal = new AbortController().signal, sessionId = "session", tainted = false) => {
      calls += 1;
      const bugs: unknown[] = [];
      const output = await runTool(
        createRegistry([tool]),
        tool.descriptor.name,
        JSON.stringify(args),
        {
          workspace,
          documents: null,
          searcher,
          checkpoint: noCheckpoint,
          signal,
          sessionId,
          turnId: "turn",
          tainted,
          idempotencyKey: `turn:${calls}`,
          callName: `turn-${calls}`,
        },
        (error) => bugs.push(error),
      );
      if (bugs.length > 0) throw bugs[0];
      return output;
    },
    [Symbol.asyncDispose]: async () => {
      await searcher[Symbol.asyncDispose]();
      await workspace[Symbol.asyncDispose]();
      await rm(base, { recursive: true, force: true });
    },
  };
}
