import assert from "node:assert/strict";
import { test } from "node:test";

import { startNats, type NatsUser } from "../src/servers/nats.ts";
import { folder } from "./support/folder.ts";
import { nats } from "./support/wire.ts";

const users: NatsUser[] = [
  { user: "asker", password: "a b@c", permissions: { publish: ["ask.>"], subscribe: ["_INBOX.>"] } },
  { user: "answerer", password: "x", permissions: { publish: [], subscribe: ["ask.>"], allowResponses: true } },
];

test("permits a user only the given subjects", async () => {
  using home = folder();
  await using server = await startNats({ dataDir: home.path, users });
  const asker = server.urlFor("asker");
  assert.doesNotMatch(await nats(asker, "PUB ask.time 0", "", "SUB _INBOX.1 1"), /-ERR/);
  assert.match(await nats(asker, "PUB other 0", ""), /Permissions Violation for Publish to "other"/);
  assert.match(
    await nats(server.urlFor("answerer"), "SUB other 1"),
    /Permissions Violation for Subscription to "other"/,
  );
  assert.throws(() => server.urlFor("nobody"), { code: "bad_option" });
});

test("restarts after kill -9 at the same address and still requires the password", async () => {
  using home = folder();
  await using first = await startNats({ dataDir: home.path, users });
  await first.kill("SIGKILL");
  await using second = await startNats({ dataDir: home.path, users, port: first.port });
  assert.equal(second.urlFor("asker"), first.urlFor("asker"));
  assert.match(await nats(`nats://asker:wrong@127.0.0.1:${second.port}`), /Authorization Violation/);
});

test("requires no password when it is started without users", async () => {
  using home = folder();
  await using server = await startNats({ dataDir: home.path });
  assert.match(await nats(server.url), /"max_payload":1048576[\s\S]*PONG/);
});
