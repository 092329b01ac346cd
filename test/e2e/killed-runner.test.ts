// Kill -9 of the tool-runner at every point of a call. A file counts how often the command ran, and the next model request shows
// the result that the model received.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: ["tool-runner"],
    model: true,
    settings:
      '[session]\npolicy = "per_conversation"\n[permissions]\nallow = ["exec"]\ndeny = ["write(secrets/**)"]\n[tools.exec]\nisolation = "none"\n',
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

/** Makes a turn call the tool while the runner dies at this point; returns the result that the model received. */
async function resultOf(point: string, tool: string, args: object): Promise<string> {
  await cluster.fault(point, "kill");
  const said = await client.ask(`tool: ${tool} ${JSON.stringify(args)}\nthen\nsay: I have seen it`, `${point}-${tool}`);
  assert.equal(said, "I have seen it");
  assert.deepEqual(await cluster.armed(), [], `the runner has not died at ${point}`);
  const result = cluster.strict?.requests.at(-1)?.messages.at(-1)?.content;
  assert.ok(Array.isArray(result));
  return JSON.stringify(result);
}

describe("killed call of class once", () => {
  const points = {
    "tool.before_claim": { effects: 1, told: /exit code 0/ },
    "tool.after_claim": { effects: 0, told: /unknown/i },
    "tool.running": { effects: 0, told: /unknown/i },
    "tool.before_settle": { effects: 1, told: /unknown/i },
    "tool.after_settle": { effects: 1, told: /exit code 0/ },
  } as const;
  for (const [point, { effects, told }] of Object.entries(points)) {
    test(`runs ${effects} times and reports the known outcome when killed at ${point}`, async () => {
      const result = await resultOf(point, "exec", { command: `echo ${point} >> effects.txt` });
      assert.match(result, told);
      if (effects === 0 || told.source === "unknown") assert.match(result, /"is_error":true/);
      const lines = (await readFile(join(cluster.home, "workspace", "effects.txt"), "utf8")).split("\n");
      assert.equal(lines.filter((line) => line === point).length, effects);
    });
  }
});

test("repeats an idempotent call before settlement and a pure call when the runner is killed", async () => {
  assert.match(
    await resultOf("tool.before_settle", "write", { path: "once.txt", content: "once\n" }),
    /Replaced|Created/,
  );
  assert.equal(await readFile(join(cluster.home, "workspace", "once.txt"), "utf8"), "once\n");
  assert.match(await resultOf("tool.running", "read", { path: "once.txt" }), /1\\tonce/);
});

// design: 003.16
test("translates argument names of other designs before it applies rules", async () => {
  const told = async (call: string) => {
    await client.ask(`tool: ${call}\nthen\nsay: I have seen it`, "elsewhere");
    return JSON.stringify(cluster.strict?.requests.at(-1)?.messages.at(-1)?.content);
  };
  await told('Write {"file_path":"names.txt","content":"one two"}');
  assert.match(await told('Edit {"file_path":"names.txt","old_string":"two","new_string":"three"}'), /Edited/);
  assert.match(await told('read_file {"file_path":"names.txt"}'), /one three/);
  assert.match(await told('Grep {"pattern":"three","glob":"*.txt","output_mode":"count"}'), /names\.txt: 1/);
  assert.match(await told('Write {"file_path":"secrets/key","content":"x"}'), /Not allowed/);
  assert.match(await told('send_message {"content":"hi","colour":"red"}'), /Unrecognized key: .{1,4}colour/);
});
