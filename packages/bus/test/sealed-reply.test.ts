// Replies sealed with the key of their request.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { headers } from "nats";
import { createReplyKey, opened, sealed, withReplyKey } from "../src/sealed-reply.ts";

const text = '{"ok":true,"data":"private"}';
const replyTo = (request: Parameters<typeof sealed>[0]) => {
  const { payload, ...carrier } = sealed(request, Buffer.from(text));
  return { data: payload, ...carrier, string: () => Buffer.from(payload).toString() };
};

test("hides the reply from everyone without the key of the request", () => {
  const key = createReplyKey();
  const reply = replyTo({ headers: withReplyKey(undefined, key) });
  assert.ok(!reply.string().includes("private"));
  assert.equal(opened(reply, key), text);
  assert.throws(() => opened(reply, createReplyKey()), /authenticate/);
  reply.data[20] = (reply.data[20] ?? 0) ^ 1;
  assert.throws(() => opened(reply, key), /authenticate/);
});

test("keeps the trace of the request", () => {
  const carrier = headers();
  carrier.set("traceparent", "00-1");
  assert.equal(withReplyKey(carrier, createReplyKey()).get("traceparent"), "00-1");
});

test("replies in plain text when the request has no key or a malformed one, as services of an older version do", () => {
  const malformed = headers();
  malformed.set("Parley-Reply-Key", randomBytes(5).toString("base64"));
  for (const request of [{}, { headers: malformed }]) assert.equal(opened(replyTo(request), createReplyKey()), text);
});
