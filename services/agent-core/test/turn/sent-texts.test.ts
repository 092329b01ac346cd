import assert from "node:assert/strict";
import { test } from "node:test";
import { sentTexts } from "../../src/prompt/sent-texts.ts";
import { answer, message, person, used } from "./support.ts";

const isMessage = (name: string) => name === "message" || name === "send_message";

test("returns texts sent with `message` under any of its names, and no others", () => {
  const messages = [
    person("hello"),
    ...used("message", { text: " one " }, "message sent"),
    ...used("send_message", { content: "two" }, "message sent"),
    ...used("read", { text: "three" }, "x"),
    answer("four"),
  ];
  assert.deepEqual(sentTexts(messages, isMessage), ["one", "two"]);
});

test("ignores calls that failed or have no result yet", () => {
  const open = message("assistant", [{ type: "tool_call", id: "open", name: "message", input: '{"text":"soon"}' }]);
  assert.deepEqual(sentTexts([...used("message", { text: "no" }, "Not allowed", true), open], isMessage), []);
});

test("ignores arguments that are not JSON, not an object or without text", () => {
  for (const input of ["{", "null", "[]", '"text"', '{"text":1}', '{"text":"  "}']) {
    const call = message("assistant", [{ type: "tool_call", id: input, name: "message", input }]);
    const result = message("tool", [{ type: "tool_result", id: input, name: "message", content: "", isError: false }]);
    assert.deepEqual(sentTexts([call, result], isMessage), [], input);
  }
});

test("ignores texts that went to other conversations", () => {
  const messages = [
    ...used("message", { text: "here" }, "message sent"),
    ...used("message", { text: "there", to: "irc:net:#team" }, "message sent"),
  ];
  assert.deepEqual(sentTexts(messages, isMessage, true), ["here"]);
  assert.deepEqual(sentTexts(messages, isMessage), ["here", "there"]);
});
