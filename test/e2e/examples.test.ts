// The examples, as their READMEs describe them, against one cluster with the settings of all of them.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readFile, symlink } from "node:fs/promises";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTelegramPeer, startTestCluster, temporaryFolder } from "@parley/testing";
import type { ApiClient, TelegramPeer, TestCluster } from "@parley/testing";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { kubernetesTools } from "../deploy/support/kubernetes-tools.ts";

const root = join(import.meta.dirname, "../..");
const examples = join(root, "examples");
const secret = "a-secret-of-the-webhook";
const cleanup = new Cleanup();
const programs = await kubernetesTools();
let cluster: TestCluster;
let client: ApiClient;
let telegram: TelegramPeer;

const settingsOf = (example: string) => readFile(join(examples, example, "parley.toml"), "utf8");

/** The folder of the MCP server outside of the repository, with its libraries, as its README says. */
async function installedTool(): Promise<string> {
  const folder = await temporaryFolder(cleanup);
  await copyFile(join(examples, "custom-tool-mcp/units.mjs"), join(folder, "units.mjs"));
  await mkdir(join(folder, "node_modules"));
  const libraries = {
    "@modelcontextprotocol": "services/tool-runner/node_modules/@modelcontextprotocol",
    zod: "node_modules/zod",
  };
  for (const [name, path] of Object.entries(libraries))
    await symlink(join(root, path), join(folder, "node_modules", name));
  return join(folder, "units.mjs");
}

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const tool = await installedTool();
  const telegramSettings = (await settingsOf("telegram-bot")).replace(
    "[channels.telegram.main]",
    `[channels.telegram.main]\nowners = ["42"]\napi_root = "${telegram.url}"`,
  );
  const mcp = (await settingsOf("custom-tool-mcp"))
    .replace("/srv/tools/custom-tool-mcp/units.mjs", tool)
    .replace('"node"', JSON.stringify(process.execPath));
  const settings = [telegramSettings, await settingsOf("github-webhook"), await settingsOf("orchestrator"), mcp].join(
    "\n",
  );
  const env = {
    "channel-gateway": { PARLEY_CHANNEL_TELEGRAM_MAIN_TOKEN: telegram.token, PARLEY_CHANNEL_HOOK_GITHUB: secret },
  };
  cluster = await startTestCluster(cleanup, { processes: [], settings, env });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

/** Runs a script of an example in its folder. */
async function run(example: string, script: string, args: readonly string[], env: Record<string, string>) {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [script, ...args], {
    cwd: join(examples, example),
    env: { PATH, HOME, ...env },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

test("telegram-bot: the bot answers its owner", async () => {
  telegram.say("say: hello from the example", { from: 42 });
  const answer = await telegram.until(
    "an answer",
    () => telegram.sent.find(({ text }) => text.includes("hello from the example")) ?? null,
  );
  assert.equal(String(answer.chatId), "42");
});

test("github-webhook: a signed delivery is stored, and a wrong signature is refused", async () => {
  const address = `${cluster.httpUrls[0]}/hooks/github`;
  const sent = await run("github-webhook", "send.mjs", [address], { PARLEY_CHANNEL_HOOK_GITHUB: secret });
  assert.equal(sent.code, 0, sent.output);
  assert.match(sent.output, /^202 .*messageId/);
  const forged = await run("github-webhook", "send.mjs", [address], { PARLEY_CHANNEL_HOOK_GITHUB: "another" });
  assert.match(forged.output, /^401 /);
});

test("openai-client: the script prints the streamed answer", async () => {
  const env = { PARLEY_URL: cluster.httpUrls[0] ?? "", PARLEY_TOKEN: cluster.token };
  const { code, output } = await run("openai-client", "chat.mjs", ["say: streamed"], env);
  assert.deepEqual([code, output], [0, "streamed\n"]);
});

// design: 001.42
test("custom-tool-mcp: the agent calls the tool without approval", async () => {
  const answer = await client.ask('tool: mcp__units__convert {"miles": 26.2}\nthen\nresults');
  assert.match(answer, /42\.2 km/);
});

test("orchestrator: a specialist works on a task and reports", async () => {
  const answer = await client.ask('tool: delegate {"task": "say: the report", "profile": "researcher"}\nthen\nresults');
  assert.match(answer, /the report/);
});

test(
  "kubernetes: the overlay renders two replicas of the gateway and of agent-core",
  { skip: programs === undefined },
  () => {
    const kubectl = programs?.kubectl ?? assert.fail("skipped");
    const rendered = execFileSync(kubectl, ["kustomize", join(examples, "kubernetes")], { encoding: "utf8" });
    const Deployment = z.looseObject({
      kind: z.literal("Deployment"),
      metadata: z.looseObject({ name: z.string() }),
      spec: z.looseObject({ replicas: z.number().int() }),
    });
    const counts = parseAllDocuments(rendered).flatMap((document) => {
      const { data } = Deployment.safeParse(document.toJS());
      return data === undefined ? [] : [[data.metadata.name, data.spec.replicas] as const];
    });
    const { "channel-gateway": gateways, "agent-core": cores } = Object.fromEntries(counts);
    assert.deepEqual({ gateways, cores }, { gateways: 2, cores: 2 });
  },
);

test("every example has a README with steps", () => {
  const folders = globSync("*/", { cwd: examples });
  assert.ok(folders.length >= 7);
  for (const folder of folders) assert.ok(existsSync(join(examples, folder, "README.md")), folder);
});
