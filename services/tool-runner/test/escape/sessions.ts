// Attempts of one session on another's background processes, and of other services to use subjects of agent-core.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hookRun, toolCall, toolProcess } from "@parley/contracts";
import { pollUntil } from "@parley/testing/until";
import { attempt } from "./ledger.ts";
import type { EscapeFixture } from "./fixture.ts";

const refusedWithinMs = 500;

export function sessionAttempts(fixture: () => EscapeFixture): void {
  /** Starts a process that writes its input and a heartbeat to workspace files. */
  const begin = async () => {
    const name = randomUUID();
    const fed = join(fixture().workspace, `fed-${name}`);
    const beat = join(fixture().workspace, `beat-${name}`);
    const ending = join(fixture().workspace, `stop-${name}`);
    await writeFile(fed, "");
    const input = {
      command: `(until [ -e stop-${name} ]; do echo beat >> beat-${name}; sleep 0.05; done) & while read -r line; do echo "$line" >> fed-${name}; done`,
      background: true,
      timeout_seconds: 60,
    };
    const [request] = await fixture().runnerFixture.plan([{ tool: "exec", class: "once", input }]);
    assert.ok(request !== undefined);
    const { content: started } = (await fixture().runnerFixture.call(request)).result;
    const id = /in the background as (\S+@\w+)/.exec(started)?.[1];
    assert.ok(id !== undefined, started);
    const { sessionId } = request;
    const beats = () => (existsSync(beat) ? readFileSync(beat, "utf8").length : 0);
    const goesOn = async () => {
      const before = beats();
      await pollUntil(() => beats() > before, "it keeps running");
    };
    await goesOn();
    return { sessionId, id, fed, goesOn, end: () => writeFile(ending, "") };
  };

  for (const [what, asks] of [
    ["feeds", { action: "input", input: "theirs\n" }],
    ["ends the input of", { action: "input", end: true }],
    ["terminates", { action: "signal", signal: "SIGTERM" }],
    ["interrupts", { action: "signal", signal: "SIGINT" }],
    ["kills", { action: "signal", signal: "SIGKILL" }],
  ] as const) {
    attempt(`another session ${what} a background process`, "the tools", async () => {
      const { id, fed, goesOn, end } = await begin();
      for (const each of [id, id.replace(/@.*/, "@first"), id.replace(/@.*/, "@second")]) {
        await fixture().call("process", "once", { ...asks, id: each });
      }
      await goesOn();
      assert.equal(readFileSync(fed, "utf8"), "");
      await end();
    });
  }

  attempt("another session reads the output of a background process", "the tools", async () => {
    const started = await fixture().call("exec", "once", {
      command: `echo whisper-$((40 + 2)); sleep 20`,
      background: true,
      timeout_seconds: 20,
    });
    const id = /in the background as (\S+@\w+)/.exec(started)?.[1];
    for (const action of ["poll", "log", "list"]) {
      assert.doesNotMatch(await fixture().call("process", "once", { action, id }), /whisper-42|echo whisper/);
    }
  });

  attempt("the gateway starts a tool call itself", "the tools", async () => {
    const [request] = await fixture().runnerFixture.plan([
      { tool: "exec", class: "once", input: { command: "touch by-the-gateway" } },
    ]);
    assert.ok(request !== undefined);
    await assert.rejects(
      fixture().gateway.request(toolCall, request, { params: { tool: "exec" }, timeoutMs: refusedWithinMs }),
    );
    assert.equal(existsSync(join(fixture().workspace, "by-the-gateway")), false);
  });

  // The gateway may end a session's processes for `/stop all`, and nothing else, even with that session's id.
  for (const [what, asks] of [
    ["signals", { action: "signal" }],
    ["feeds", { action: "input", input: "theirs\n" }],
    ["reads", { action: "log" }],
  ] as const) {
    attempt(`the gateway ${what} a background process over the bus`, "the tools", async () => {
      const { sessionId, id, fed, goesOn, end } = await begin();
      const question = {
        sessionId,
        id,
        waitMs: 0,
        offset: null,
        limit: 1_000,
        input: "",
        end: false,
        signal: "SIGKILL" as const,
        ...asks,
      };
      for (const replica of ["first", "second"]) {
        const asking = { params: { replica }, timeoutMs: refusedWithinMs };
        await assert.rejects(fixture().gateway.request(toolProcess, question, asking));
      }
      await goesOn();
      assert.equal(readFileSync(fed, "utf8"), "");
      await end();
    });
  }

  attempt("a command that is not a configured hook runs as one", "the tools", async () => {
    const payload = {
      hook_event_name: "Stop" as const,
      session_id: "s",
      session_key: "k",
      turn_id: "t",
      permission_mode: "default" as const,
      profile: null,
      exit_reason: "end_turn" as const,
      last_assistant_message: "",
      stop_hook_active: false,
    };
    for (const bus of [fixture().runnerFixture.core, fixture().gateway]) {
      const hook = `touch ${join(fixture().outside, "by-a-hook")}`;
      await assert.rejects(bus.request(hookRun, { hook, payload }, { timeoutMs: refusedWithinMs }));
    }
    assert.equal(existsSync(join(fixture().outside, "by-a-hook")), false);
  });

  attempt("a command changes a stored document, or shadows one with a file on disk", "bubblewrap", async () => {
    const before = await fixture().call("read", "pure", { path: "MEMORY.md" });
    await fixture().raid(
      "echo planted > MEMORY.md; mkdir -p memory skills/evil; echo planted > memory/x.md; echo planted > skills/evil/SKILL.md",
    );
    assert.equal(await fixture().call("read", "pure", { path: "MEMORY.md" }), before);
    for (const path of ["memory/x.md", "skills/evil/SKILL.md"]) {
      assert.doesNotMatch(await fixture().call("read", "pure", { path }), /planted/);
    }
  });
}
