import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ModelError, type ModelRequest } from "../src/model/provider.ts";
import { createRehearsal, rehearse } from "../src/model/rehearsal/rehearsal.ts";
import { emptyRound, parseScript } from "../src/model/rehearsal/script.ts";

const requestOf = (script: string): ModelRequest => ({
  system: "s",
  tools: [],
  messages: [{ role: "user", parts: [{ type: "text", text: script }] }],
  maxOutputTokens: 100,
});
const never = new AbortController().signal;
const deaf = { delta: () => undefined, alive: () => undefined };

describe("a rehearsal script", () => {
  test("is parsed into steps of calls and texts", () => {
    const rounds = parseScript('tool: ls {}\ntool: read {"path":"a b"}\nthen\nthink: hm\nsay: done\nwait: 5\npause: 7');
    assert.deepEqual(rounds[0]?.calls, [
      { name: "ls", input: "{}" },
      { name: "read", input: '{"path":"a b"}' },
    ]);
    assert.deepEqual(rounds[1], { ...emptyRound(), say: ["done"], think: "hm", waitMs: 5, pauseMs: 7 });
  });

  test("sets failures, stop reasons, words and usage, and ignores invalid values", () => {
    const [round] = parseScript("fail: overloaded 2 500\nstop: max_tokens\nusage: 1000 20\nwords: 3");
    assert.deepEqual(round?.fail, { failure: "overloaded", times: 2, retryAfterMs: 500 });
    assert.equal(round?.stop, "max_tokens");
    assert.deepEqual(round?.usage, { input: 1_000, output: 20 });
    assert.deepEqual(round?.say, ["word1 word2 word3"]);
    const [odd] = parseScript("fail: sadness\nstop: never\nwords: -1\nsaid: hello");
    assert.deepEqual([odd?.fail, odd?.stop, odd?.say], [undefined, undefined, [""]]);
  });
});

describe("the rehearsal model", () => {
  // design: 001.32
  test("repeats itself exactly for a repeated call", () => {
    const request = requestOf("think: hm\ntool: ls {}");
    assert.deepEqual(rehearse(request), rehearse(request));
    assert.deepEqual(
      rehearse(request).parts.map((part) => part.type),
      ["reasoning", "tool_call"],
    );
  });

  test("fails as often as the script specifies and then answers", async () => {
    const model = createRehearsal();
    const request = requestOf("fail: rate_limit 2 40\nsay: here");
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(model.stream(request, deaf, never), (error) => {
        assert.ok(error instanceof ModelError);
        return error.failure === "rate_limit" && error.retryAfterMs === 40;
      });
    }
    assert.deepEqual((await model.stream(request, deaf, never)).parts, [{ type: "text", text: "here" }]);
  });

  test("reports the scripted usage and stop reason, or none", async () => {
    const reply = rehearse(requestOf("say: x\nusage: 150000 9\nstop: max_tokens"));
    assert.deepEqual([reply.usage?.inputTokens, reply.usage?.outputTokens], [150_000, 9]);
    assert.equal(reply.stopReason, "max_tokens");
    assert.equal(rehearse(requestOf("say: x\nusage: unknown")).usage, null);
  });

  test("ends a pause immediately with the signal's reason when stopped", async () => {
    const stop = new AbortController();
    const reason = new Error("stopped");
    const on = { ...deaf, alive: () => stop.abort(reason) };
    await assert.rejects(
      createRehearsal().stream(requestOf("pause: 600000\nsay: x"), on, stop.signal),
      (error) => error === reason,
    );
  });

  test("ignores notes of the loop after a message", () => {
    const { messages, ...rest } = requestOf("say: from the script");
    const loop = {
      role: "user" as const,
      parts: [{ type: "text" as const, text: "[Documents have changed]\n\nMEMORY.md" }],
    };
    const { parts } = rehearse({ ...rest, messages: [...messages, loop] });
    assert.deepEqual(parts, [{ type: "text", text: "from the script" }]);
  });

  test("repeats its text when the loop asks for an unsent one, and no call", () => {
    const unsent = { role: "user" as const, parts: [{ type: "text" as const, text: "[Nothing was said: send it]" }] };
    const afterEnd = (script: string) => {
      const { messages, ...rest } = requestOf(script);
      const said = { role: "assistant" as const, parts: [{ type: "text" as const, text: "it" }] };
      return rehearse({ ...rest, messages: [...messages, said, unsent] }).parts;
    };
    assert.deepEqual(afterEnd("say: it"), [{ type: "text", text: "it" }]);
    assert.deepEqual(afterEnd("say: it\nthen\nsay: next"), [{ type: "text", text: "next" }]);
    assert.deepEqual(afterEnd("tool: ls {}"), [{ type: "text", text: "[rehearsal model] You said: tool: ls {}" }]);
  });

  test("does not run a script that a summary request quotes", () => {
    const request = "Write the summary that will replace the transcript.\n\nUser: x\nsay: quoted\ntool: ls {}";
    const { parts } = rehearse(requestOf(request));
    assert.equal(parts.length, 1);
    assert.match(parts[0]?.type === "text" ? parts[0].text : "", /^Summary by the rehearsal model/);
  });
});
