// Background commands on a whole cluster: the user receives a notice of their end, once, also when a process is killed.
// /stop also lists and ends them.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { textOf, type Message } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { z } from "zod";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const CarriedOut = z.object({ text: z.string() });
const announcementOf = (messages: readonly Message[]) => messages.filter(({ from }) => from?.origin === "process");

/** A command that waits until `release` lets it continue. */
function waits(name: string): string {
  const input = { command: `while [ ! -e ${name} ]; do sleep 0.05; done; echo the build is green`, background: true };
  return `tool: exec ${JSON.stringify(input)}\nthen\nsay: it is on its way`;
}

describe("background command", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, {
      processes: ["agent-core", "tool-runner", "store"],
      replicas: { "agent-core": 2 },
      settings:
        '[session]\npolicy = "per_conversation"\n[permissions]\nallow = ["exec", "process"]\n[profiles.builder]\ntools = ["exec"]\n',
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const release = (name: string) => writeFile(join(fixture.cluster.home, "workspace", name), "");
  const command = async (conversation: string, text: string) => {
    const body = JSON.stringify({ conversation, text });
    const response = await fixture.client.fetch("/api/messages", { method: "POST", body });
    return CarriedOut.parse(await response.json()).text;
  };

  /** The log of a session once the turn of the exit notice has ended, with the answer. */
  async function answered(sessionId: string): Promise<{ messages: Message[]; answer: string }> {
    for (;;) {
      // The log below is read after these events, so it contains them; later events may be missing.
      const known = fixture.events.length;
      const messages = await fixture.log(sessionId);
      const [announced] = announcementOf(messages);
      const ended = fixture.events
        .slice(0, known)
        .some((event) => event.type === "turn.finished" && event.turnId === (announced?.turnId ?? "none yet"));
      if (announced !== undefined && ended) {
        const said = messages.filter(({ role, turnId }) => role === "assistant" && turnId === announced.turnId);
        return { messages, answer: said.map(({ parts }) => textOf(parts)).join("\n") };
      }
      await fixture.happens((event) => fixture.events.indexOf(event) >= known);
    }
  }

  test("starts one turn that reports the end when the command outlives its turn", async () => {
    const { sessionId } = await fixture.turn(waits("first"), "first");
    await release("first");
    const { messages, answer } = await answered(sessionId);
    assert.equal(announcementOf(messages).length, 1);
    assert.match(textOf(announcementOf(messages)[0]?.parts ?? []), /exit code 0[^]*the build is green/);
    assert.match(answer, /Background process ended/, "the rehearsal model repeats what it heard");
  });

  test("is reported once when agent-core is killed at its end", async () => {
    const { sessionId } = await fixture.turn(waits("killed"), "killed");
    await fixture.cluster.fault("agent.after_claim", "kill");
    await release("killed");
    const { messages } = await answered(sessionId);
    assert.deepEqual(await fixture.cluster.armed(), [], "the leader died with the announcement in its hands");
    assert.equal(announcementOf(messages).length, 1);
    const { turnId } = announcementOf(messages)[0] ?? assert.fail();
    assert.equal(messages.filter((each) => each.role === "assistant" && each.turnId === turnId).length, 1);
  });

  for (const point of ["store.before_process_end", "store.after_process_end"]) {
    test(`is reported once when the store is killed at ${point}`, async () => {
      const { sessionId } = await fixture.turn(waits(point), point);
      await fixture.cluster.fault(point, "kill");
      await release(point);
      const { messages } = await answered(sessionId);
      assert.deepEqual(await fixture.cluster.armed(), []);
      assert.equal(announcementOf(messages).length, 1);
    });
  }

  test("is reported by the parent agent when the sub-agent that started it has finished", async () => {
    const task = JSON.stringify({ prompt: waits("left"), mode: "wait", profile: "builder" });
    const { sessionId } = await fixture.turn(`tool: sessions_spawn ${task}\nthen\nsay: handed over`, "left");
    await release("left");
    const { messages, answer } = await answered(sessionId);
    const [announced, ...more] = announcementOf(messages);
    assert.deepEqual(more, []);
    assert.match(
      textOf(announced?.parts ?? []),
      /^\[for sub-agent ".+" \([0-9a-f-]+\), which has finished;[^\]]*\]\n\nBackground process ended[^]*the build is green/,
    );
    assert.match(answer, /Background process ended/);
  });

  test("is reported as lost when its tool-runner dies", async () => {
    const { sessionId } = await fixture.turn(waits("never"), "lost");
    await fixture.cluster.kill("tool-runner", 1, "SIGKILL");
    const { messages } = await answered(sessionId);
    assert.match(textOf(announcementOf(messages)[0]?.parts ?? []), /is lost: the tool-runner that ran it stopped/);
  });

  test("is listed by /stop and ended without a notice when /stop all is sent", async () => {
    assert.equal(await command("stopped", "/stop"), "Nothing is running.");
    const { sessionId } = await fixture.turn(waits("nothing"), "stopped");
    const named = await command("stopped", "/stop");
    assert.match(named, /^No turn is running\. 1 background process continues: "while \[ ! -e .*\/stop all ends it\.$/);
    assert.equal(await command("stopped", "/stop all"), "1 background process was ended.");
    for (let reply = ""; reply !== "Nothing is running.";) reply = await command("stopped", "/stop");
    assert.deepEqual(announcementOf(await fixture.log(sessionId)), []);
  });
});
