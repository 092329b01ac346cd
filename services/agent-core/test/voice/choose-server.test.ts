// Choice of the voice server, and the problem reports if there is none.
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

test("chooses the only capable server, on the first tool-runner that has it", () => {
  const runners = [
    runner("b", { files: [], speech: all }),
    runner("a", { files: [], speech: ["start", "updates", "stop"] }),
  ];
  const chosen = chooseServer(runners, settings());
  assert.deepEqual(chosen, { server: "speech", runner: "a", shared: false, has: ["start", "updates", "stop"] });
});

test("requires a choice in the settings when two servers are capable", () => {
  const runners = [runner("a", { one: all, two: all })];
  assert.match(problem(runners), /Several MCP servers support voice: one, two\. Name one in \[voice\] server/);
  const chosen = chooseServer(runners, settings({ server: "two" }));
  assert.equal("server" in chosen && chosen.server, "two");
});

test("reports missing tools by their configured names, with a remedy", () => {
  const half = runner("a", { speech: ["start"] });
  assert.match(problem([half]), /stt_start_session, stt_get_updates, stt_stop_session are missing.*docs\/voice\.md/);
  assert.match(
    problem([half], { server: "speech", tools: { stop: "hush" } }),
    /"speech" lacks the tools stt_get_updates, hush\..*\[voice\.tools\]/,
  );
  assert.match(problem([half], { server: "other" }), /"other".*not configured in \[mcp\.servers\]/);
  assert.match(problem([]), /No tool-runner responded/);
});
