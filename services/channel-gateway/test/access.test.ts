// The checks of Host, Origin and token, and the configuration.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readBaseConfig } from "@parley/chassis";
import fc from "fast-check";
import { readConfig } from "../src/config.ts";
import { sha256, sha256Hex } from "../src/channels/digest.ts";
import { hostAllowed, hostName, originAllowed, ownNames, tokenAccepted, tokenOf } from "../src/http/access.ts";

test("returns the name of a Host header without port and brackets, and null for invalid headers", () => {
  assert.equal(hostName("Example.org:8787"), "example.org");
  assert.equal(hostName("[::1]:8787"), "::1");
  assert.equal(hostName("127.0.0.1"), "127.0.0.1");
  for (const bad of [undefined, "", "a b", "user@host", "host/path", "host:port", "a:1:2", "[::1"]) {
    assert.equal(hostName(bad), null, String(bad));
  }
});

test("allows loopback, the listening address and listed names, but no wildcard address", () => {
  const names = ownNames("0.0.0.0", ["parley.example.org"]);
  assert.ok(hostAllowed("localhost:1", names) && hostAllowed("parley.example.org", names));
  assert.ok(!hostAllowed("0.0.0.0", names) && !hostAllowed("example.org", names));
  assert.ok(!hostAllowed("parley.example.org.evil.example", names));
  assert.ok(hostAllowed("anything.example", ownNames("::", ["*"])));
});

test("compares an Origin by scheme and authority, never by a prefix", () => {
  assert.ok(originAllowed(undefined, "localhost:8787", []));
  assert.ok(originAllowed("http://localhost:8787", "localhost:8787", []));
  assert.ok(originAllowed("https://parley.example.org", "parley.example.org", []));
  for (const origin of [
    "null",
    "http://localhost:87",
    "http://localhost:8787.evil.example",
    "file://localhost:8787",
    "",
  ]) {
    assert.ok(!originAllowed(origin, "localhost:8787", ["https://console.example.org"]), origin);
  }
  assert.ok(!originAllowed("https://console.example.org.evil.example", "x", ["https://console.example.org"]));
});

test("accepts only tokens with a known hash, from the header or a subprotocol", () => {
  const hashes = [sha256("one-token"), sha256("another")];
  assert.ok(tokenAccepted("another", hashes));
  fc.assert(
    fc.property(fc.string(), (token) =>
      assert.equal(tokenAccepted(token, hashes), token === "one-token" || token === "another"),
    ),
  );
  assert.equal(tokenOf({ authorization: "bearer one-token" }), "one-token");
  assert.equal(tokenOf({ authorization: "Basic one-token" }), null);
  assert.equal(tokenOf({ protocols: "parley.v1, parley.bearer.one-token" }), "one-token");
  assert.equal(tokenOf({ authorization: "Basic x", protocols: "parley.bearer.one-token" }), null);
});

test("stores only token hashes in the configuration and names missing variables", () => {
  const base = readBaseConfig({ PARLEY_REPLICA: "r" }, "channel-gateway");
  const read = (env: Record<string, string>) => readConfig(env, base);
  assert.throws(
    () => read({}),
    (error: unknown) => error instanceof ConfigError && /PARLEY_TOKEN/.test(error.message),
  );
  assert.throws(() => read({ PARLEY_TOKEN: "short" }), /PARLEY_TOKEN.*16/);
  assert.throws(() => read({ PARLEY_TOKEN_SHA256: "abc" }), /PARLEY_TOKEN_SHA256/);
  const hash = sha256Hex("first token of two");
  const config = read({
    PARLEY_TOKEN: "0123456789abcdef",
    PARLEY_TOKEN_SHA256: ` ${hash.toUpperCase()} ,`,
    PARLEY_CHANNEL_X: "s",
  });
  assert.deepEqual(config.http.tokenHashes, [hash, sha256Hex("0123456789abcdef")]);
  assert.ok(!JSON.stringify(config).includes("0123456789abcdef"));
  assert.deepEqual([...config.channelSecrets], [["PARLEY_CHANNEL_X", "s"]]);
  assert.deepEqual([config.http.host, config.http.port], ["127.0.0.1", 8787]);
});
