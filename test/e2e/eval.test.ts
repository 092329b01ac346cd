// `parley eval` and `parley replay` against a cluster with the rehearsal model.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  apiClient,
  Cleanup,
  startTestCluster,
  temporaryFolder,
  type ApiClient,
  type TestCluster,
} from "@parley/testing";
import { z } from "zod";
import { runParley } from "../../packages/cli/test/support/parley.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let folder: string;

before(async () => {
  cluster = await startTestCluster(cleanup, { processes: [] });
  client = apiClient(cluster.httpUrls, cluster.token);
  folder = await temporaryFolder(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const Report = z.object({
  cases: z.array(
    z.looseObject({
      name: z.string(),
      passed: z.boolean(),
      turns: z.array(z.looseObject({ failures: z.array(z.string()) })),
    }),
  ),
});

// design: 001.32
test("grades the turns of each case, and exits with 1 when one fails", async () => {
  const recorded = await client.settled(await client.post("say: from the past"));
  const file = join(folder, "cases.yaml");
  await writeFile(
    file,
    `name: reads a folder
instructions: Be brief.
turns:
  - say: "tool: LS {\\"path\\":\\".\\"}\\nthen\\nsay: looked"
    expect: [{ match: looked }, { tool_sequence: [ls] }, { max_cost_usd: 0 }, { max_seconds: 60 }]
  - say: "say: and again"
    expect: [{ contains: again }, { regex: "^and" }]
---
name: grades a turn of the past
turns:
  - recorded: ${recorded.turnId}
    expect: [{ contains: past }]
---
name: fails
turns:
  - say: "say: no"
    expect: [{ contains: yes }, { tool_used: exec }]
`,
  );
  const junit = join(folder, "results.xml");
  const { code, stdout } = await runParley(cluster.home, ["eval", file, "--json", "--junit", junit]);
  assert.equal(code, 1);
  const { cases } = Report.parse(JSON.parse(stdout));
  assert.deepEqual(
    cases.map(({ name, passed, turns }) => [name, passed, turns.flatMap(({ failures }) => failures).length]),
    [
      ["reads a folder", true, 0],
      ["grades a turn of the past", true, 0],
      ["fails", false, 2],
    ],
  );
  assert.match(await readFile(junit, "utf8"), /tests="3" failures="1"/);
  const wrong = await runParley(cluster.home, ["eval"]);
  assert.equal(wrong.code, 2);
});

test("replays a recorded turn in a copy of its session and shows the difference", async () => {
  await client.settled(await client.post("say: before", { conversation: "replay" }));
  const { turnId } = await client.settled(await client.post("say: one", { conversation: "replay" }));
  const same = await runParley(cluster.home, ["replay", turnId]);
  assert.equal(same.code, 0, same.stderr);
  assert.match(same.stdout, /The answer is the same/);
  const changed = await runParley(cluster.home, ["replay", turnId, "--prompt", "say: two"]);
  assert.match(changed.stdout, /-one\n[\s\S]*\+two/);
  const write = 'tool: write {"path":"replayed.txt","content":"x"}\nthen\nsay: done';
  const denied = await runParley(cluster.home, ["replay", turnId, "--prompt", write, "--json"]);
  assert.match(denied.stderr, /denied: write/, "a replay only reads unless told otherwise");
  const unknown = await runParley(cluster.home, ["replay", "00000000-0000-4000-8000-000000000000"]);
  assert.equal(unknown.code, 1);
  const model = await runParley(cluster.home, ["replay", turnId, "--model", "no-such-model"]);
  assert.equal(model.code, 1);
});
