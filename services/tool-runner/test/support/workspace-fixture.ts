// A temporary workspace, with a secret next to it that must never be read or changed.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { noCheckpoint } from "../../src/snapshots/recorder.ts";
import { createRegistry, runTool } from "../../src/tool/registry.ts";
import { createSearcher, type Searcher } from "../../src/search/search.ts";
import type { Tool, ToolOutput } from "../../src/tool/tool.ts";
import type { QuotaRules } from "../../src/workspace/quota.ts";
import { openWorkspace, type Workspace } from "../../src/workspace/workspace.ts";

export const secret = "the secret outside";

export interface WorkspaceFixture extends AsyncDisposable {
  workspace: Workspace;
  searcher: Searcher;
  /** Path of the workspace. */
  inside: string;
  /** A sibling folder with `secret.txt`. */
  outside: string;
  /** Runs a tool as a call would; an unexpected exception fails the test. */
  call(tool: Tool, args: unknown, signal?: AbortSignal, sessionId?: string, tainted?: boolean): Promise<ToolOutput>;
}

/** `rules`: the quota; default: no limit. `disk`: folder on the file system to use. `searcher`: default: outside a sandbox. */
export async function makeWorkspaceFixture(
  rules?: QuotaRules,
  disk: string = tmpdir(),
  searcher: Searcher = createSearcher(),
): Promise<WorkspaceFixture> {
  const base = await mkdtemp(join(disk, "parley-ground-"));
  const inside = join(base, "inside");
  const outside = join(base, "outside");
  await mkdir(outside);
  await writeFile(join(outside, "secret.txt"), secret);
  // Not next to the workspace, where tests check what tools leave outside.
  const state = await mkdtemp(join(tmpdir(), "parley-ground-state-"));
  const workspace = await openWorkspace(inside, rules, state);
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
          grant: "test.grant",
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
      await workspace[Symbol.asyncDispose]();
      for (const each of [base, state]) await rm(each, { recursive: true, force: true });
    },
  };
}
