// Where a conversation was left, in two lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@parley/contracts";
import { recap } from "../src/commands/recap.ts";

const message = (seq: number, role: Message["role"], text: string, name?: string): Message => ({
  seq,
  role,
  turnId: "t",
  parts: [{ type: "text", text }],
  model: null,
  createdAt: "",
  ...(name === undefined
    ? {}
    : {
        from: {
          channel: "irc",
          account: "net",
          conversation: "c",
          contact: { id: "7", name },
          role: "owner",
          origin: "user",
        },
      }),
});

// design: 002.20
test("a conversation is told by what was asked last and what was answered, each in one line", () => {
  const said = [
    message(1, "user", "Where is the cat?", "Ada"),
    message(2, "assistant", "On the roof."),
    message(3, "user", "And\nthe dog?", "Ada"),
    message(4, "assistant", ""),
    message(5, "tool", "a page"),
    message(6, "user", "[a note of the loop]"),
    message(7, "assistant", `In the garden. ${"x".repeat(400)}`),
  ];
  const [asked, answered, ...more] = recap(said);
  assert.equal(asked, "Last from Ada: And the dog?");
  assert.match(answered ?? "", /^My answer: In the garden\. x+…$/);
  assert.deepEqual(more, []);
});

test("an answer to something before it is not shown as one to it, and a conversation without words has no lines", () => {
  const said = [message(1, "user", "One?", "Ada"), message(2, "assistant", "One."), message(3, "user", "Two?", "Ada")];
  assert.deepEqual(recap(said), ["Last from Ada: Two?", "Not answered yet."]);
  assert.deepEqual(recap([]), []);
});
