// The URL of the bus: hosts, login, and when TLS is required.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBusUrl } from "@parley/bus";

test("requires TLS for all servers when one URL has the scheme tls", () => {
  assert.deepEqual(parseBusUrl("nats://a%40b:p%2Fw@one:4222, tls://two:4223"), {
    hosts: ["one:4222", "two:4223"],
    user: "a@b",
    pass: "p/w",
    tls: true,
  });
  assert.deepEqual(parseBusUrl("one:4222"), { hosts: ["one:4222"], tls: false });
});

test("refuses a URL without showing its password when the scheme is unknown", () => {
  for (const url of ["wss://u:hidden@h:1", "http://u:hidden@h:1", "TLSS://u:hidden@h:1"]) {
    assert.throws(
      () => parseBusUrl(url),
      (error: Error) => /unknown scheme/.test(error.message) && !error.message.includes("hidden"),
    );
  }
  assert.equal(parseBusUrl("TLS://h:1").tls, true);
});
