// The recap of a conversation in two lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@parley/contracts";
import { recap } from "../src/operations/recap.ts";

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
test("shows the last message and its answer, each in one line", () => {
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

test("omits an answer to an earlier message and returns no lines for an empty conversation", () => {
  const said = [message(1, "user", "One?", "Ada"), message(2, "assistant", "One."), message(3, "user", "Two?", "Ada")];
  assert.deepEqual(recap(said), ["Last from Ada: Two?", "Not answered yet."]);
  assert.deepEqual(recap([]), []);
});
