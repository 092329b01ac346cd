import assert from "node:assert/strict";
import { test } from "node:test";
import { channelLines, introduction, rehearsalWarning, splitStates } from "../src/introduction.ts";

test("names the token's file, not the token, when the cluster is ready", () => {
  const cluster = {
    httpUrls: ["http://127.0.0.1:8787"],
    token: "secret-token",
    tokenFile: "/data/token",
    model: "rehearsal",
    home: "/data",
  };
  const lines = introduction(cluster, "http://127.0.0.1:8787/#code=x");
  assert.ok(lines.includes("token    in /data/token"));
  assert.ok(lines.every((line) => !line.includes(cluster.token)));
  assert.ok(introduction(cluster, null).every((line) => !line.startsWith("open")));
});

test("fits the link that signs in on a terminal of 80 columns", () => {
  const cluster = { httpUrls: ["http://127.0.0.1:8787"], tokenFile: "/data/token", model: "m", home: "/data" };
  const link = `http://127.0.0.1:8787/#code=${"x".repeat(43)}`;
  for (const line of introduction(cluster, link)) assert.ok(line.length < 84, line);
  assert.equal(introduction(cluster, link)[1]?.trim(), "signs a browser in once, within 15 minutes");
});

test("warns when accounts are connected and the rehearsal model answers the people there", () => {
  const rehearsal = "rehearsal: a built-in scripted model, no key set";
  const [first, second] = rehearsalWarning(rehearsal, ["telegram:main connected as @bot", "telegram:main standby"]);
  assert.match(first ?? "", /^warning  people on telegram:main get answers of the rehearsal$/);
  assert.match(second ?? "", /npx parley onboard/);
  assert.ok((second ?? "").length <= 80, second);
  assert.deepEqual(rehearsalWarning(rehearsal, ["hook:build ready", "observer:log ready"]), []);
  assert.deepEqual(rehearsalWarning("claude-x, the default model", ["telegram:main connected"]), []);
});

test("keeps the reason of an account whole, also with semicolons", () => {
  const states = ["telegram:main disabled: token refused; retried every 5 minutes", "hook:build ready"];
  assert.deepEqual(splitStates(states.join("; ")), states);
  assert.deepEqual(splitStates(""), []);
});

test("names each account once, and as connecting while no replica has it", () => {
  assert.deepEqual(channelLines([]), []);
  const states = ["telegram:main standby", "irc:libera standby", "telegram:main connected as @bot"];
  assert.deepEqual(channelLines(states), [
    "channel  irc:libera connecting",
    "channel  telegram:main connected as @bot",
  ]);
  assert.deepEqual(channelLines(["a:b standby", "a:b standby"]), ["channel  a:b connecting"]);
});
