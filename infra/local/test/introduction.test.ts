import assert from "node:assert/strict";
import { test } from "node:test";
import { introduction } from "../src/introduction.ts";

test("names the token's file, not the token, when the cluster is ready", () => {
  const cluster = {
    httpUrls: ["http://127.0.0.1:8787"],
    token: "secret-token",
    tokenFile: "/data/token",
    model: "rehearsal",
    home: "/data",
  };
  const lines = introduction(cluster, "http://127.0.0.1:8787/#code=x");
  assert.ok(lines.includes("token  in /data/token"));
  assert.ok(lines.every((line) => !line.includes(cluster.token)));
  assert.ok(introduction(cluster, null).every((line) => !line.startsWith("open")));
});
