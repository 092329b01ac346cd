// Which server listens, and what people are told where none can.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ParleySettingsSchema, type SttTool } from "@parley/contracts";
import { chooseServer, type RunnerServers } from "../../src/voice/choose-server.ts";

const all: SttTool[] = ["start", "updates", "stop", "session", "devices"];
const settings = (voice: object = {}) => ParleySettingsSchema.shape.voice.parse(voice);
const runner = (name: string, servers: Record<string, SttTool[]>): RunnerServers => ({
  runner: name,
  servers: Object.entries(servers).map(([server, has]) => ({ server, shared: false, has })),
});
function problem(runners: RunnerServers[], voice: object = {}): string {
  const chosen = chooseServer(runners, settings(voice));
  assert.ok("problem" in chosen);
  return chosen.problem;
}

test("the only server that can listen is found, on the first of the tool-runners that have it", () => {
  const runners = [
    runner("b", { files: [], speech: all }),
    runner("a", { files: [], speech: ["start", "updates", "stop"] }),
  ];
  const chosen = chooseServer(runners, settings());
  assert.deepEqual(chosen, { server: "speech", runner: "a", shared: false, has: ["start", "updates", "stop"] });
});

test("two that can are a question to the operator, who names one", () => {
  const runners = [runner("a", { one: all, two: all })];
  assert.match(problem(runners), /Several MCP servers can listen: one, two\. Name one in \[voice\] server/);
  const chosen = chooseServer(runners, settings({ server: "two" }));
  assert.equal("server" in chosen && chosen.server, "two");
});

test("where tools are missing they are named as the settings name them, with what to do", () => {
  const half = runner("a", { speech: ["start"] });
  assert.match(problem([half]), /stt_start_session, stt_get_updates, stt_stop_session are missing.*docs\/voice\.md/);
  assert.match(
    problem([half], { server: "speech", tools: { stop: "hush" } }),
    /"speech" has no stt_get_updates, hush\..*\[voice\.tools\]/,
  );
  assert.match(problem([half], { server: "other" }), /"other".*not among \[mcp\.servers\]/);
  assert.match(problem([]), /No tool-runner answers/);
});
