// The source files that a request enters in a running cluster, without those that the idle cluster enters as well.
import { randomUUID } from "node:crypto";
import { relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { repositoryPrograms } from "@parley/local";
import { apiClient, Cleanup, startTestCluster, type ApiClient } from "@parley/testing";
import { z } from "zod";
import { coverProcess, type ProcessCoverage } from "./coverage.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const settings = `
[session]
policy = "per_conversation"
[permissions]
ask = ["exec"]
`;

/** How often each request is traced: a file counts when every run entered it. */
const runs = 3;
/** How long the idle cluster is observed before and after, in milliseconds: longer than its slowest frequent work, the 10 s of a workspace count. */
const idleMs = 11_000;
/** How long the work that follows the first requests may take, in milliseconds. */
const settleMs = 2_000;

const Approvals = z.object({ approvals: z.array(z.object({ id: z.string() })) });

/** The requests that are traced, and the number of files they may enter. */
export const requests = {
  message: { title: "plain message", maxFiles: 88, run: (client: ApiClient) => answered(client, "say: hello") },
  ls: {
    title: "one `ls` call",
    maxFiles: 145,
    run: (client: ApiClient) => answered(client, "tool: ls {}\nthen\nsay: done"),
  },
  exec: {
    title: "one approved `exec` call",
    maxFiles: 188,
    run: (client: ApiClient) => approved(client, 'tool: exec {"command":"touch a.txt"}\nthen\nsay: done'),
  },
};

interface Trace {
  /** Paths relative to the repository, sorted. */
  files: string[];
}

export type Traces = Record<keyof typeof requests, Trace>;

/** Starts a cluster and traces every request in it. Each request runs once before, so that lazy loading does not count. */
export async function traceRequests(): Promise<Traces> {
  await using cleanup = new Cleanup();
  const cluster = await startTestCluster(cleanup, {
    settings,
    // A bundle has no files to count.
    programs: repositoryPrograms,
    env: { all: { NODE_OPTIONS: "--inspect=127.0.0.1:0" } },
  });
  const client = apiClient(cluster.httpUrls, cluster.token);
  const processes: ProcessCoverage[] = [];
  for (const line of cluster.lines) {
    const url = /Debugger listening on (ws:\S+)/.exec(line)?.[1];
    if (url !== undefined) processes.push(await coverProcess(url));
  }
  cleanup.add(async () => processes.forEach((each) => each.close()));
  const entered = async () => sourceFiles(await Promise.all(processes.map((each) => each.take())));
  const idle = async (durationMs: number) => {
    await delay(durationMs);
    return entered();
  };

  for (const { run } of Object.values(requests)) await run(client);
  await idle(settleMs);
  const background = await idle(idleMs);
  const traces: Partial<Traces> = {};
  for (const [name, { run }] of Object.entries(requests) as [keyof Traces, (typeof requests)[keyof Traces]][]) {
    let common: Set<string> | undefined;
    for (let each = 0; each < runs; each++) {
      await entered();
      await run(client);
      const files = await entered();
      common = common?.intersection(files) ?? files;
    }
    traces[name] = { files: [...(common ?? [])] };
  }
  // Timers of the last request are no work of the idle cluster.
  await idle(settleMs);
  for (const file of await idle(idleMs)) background.add(file);
  for (const trace of Object.values(traces))
    trace.files = trace.files.filter((file) => !background.has(file)).toSorted();
  return traces as Traces;
}

/** The repository's source files among the URLs of scripts. */
function sourceFiles(urls: readonly ReadonlySet<string>[]): Set<string> {
  return new Set(
    urls
      .flatMap((each) => [...each])
      .filter((url) => url.startsWith("file:") && url.endsWith(".ts"))
      .map((url) => relative(root, fileURLToPath(url)))
      .filter((path) => /^(?:services|packages)\/[^/]+\/src\//.test(path)),
  );
}

/** One request that waits for the answer, so that nothing but the message is traced. */
async function answered(client: ApiClient, text: string): Promise<void> {
  await client.ask(text, randomUUID());
}

async function approved(client: ApiClient, text: string): Promise<void> {
  const messageId = await client.post(text, { conversation: randomUUID() });
  let id: string | undefined;
  while (id === undefined) {
    id = Approvals.parse(await (await client.fetch("/api/approvals")).json()).approvals[0]?.id;
    if (id === undefined) await delay(20);
  }
  const body = JSON.stringify({ decision: "allow" });
  const response = await client.fetch(`/api/approvals/${id}`, { method: "POST", body });
  if (!response.ok) throw new Error(`the approval failed: ${response.status} ${await response.text()}`);
  const turn = await client.settled(messageId);
  if (turn.state !== "done") throw new Error(`the turn ended as ${turn.state}`);
}
