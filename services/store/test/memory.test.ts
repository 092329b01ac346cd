// Memory on a real PostgreSQL and a real bus: what is found, by whom, and with which author.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { store, WireError, type InboundMessage, type InputOf } from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { Cleanup } from "@parley/testing";
import type { Client } from "pg";
import { openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let core: Bus;
let gateway: Bus;
let sql: Client;

before(async () => {
  fixture = await openStoreFixture(cleanup, "[memory]\nsessions = true\n");
  ({ core, gateway, sql } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

const put = (path: string, content: string, author: InputOf<typeof store.documentPut>["author"] = "owner") =>
  gateway.request(store.documentPut, { opId: randomUUID(), path, content, author });

/** A person sends a message, and a turn starts. */
const turnOf = async (said: string, overrides: Partial<InboundMessage> = {}) =>
  (await fixture.begun({ ...saying(said), ...overrides })).turnId;

const search = (turnId: string, query: string, more: Partial<InputOf<typeof store.memorySearch>> = {}) =>
  core.request(store.memorySearch, { turnId, query, limit: 10, ...more });

const append = (turnId: string, path: string, text: string, more: Partial<InputOf<typeof store.memoryAppend>> = {}) =>
  core.request(store.memoryAppend, {
    opId: randomUUID(),
    epoch: fixture.epoch,
    turnId,
    path,
    heading: "# Notes\n\n",
    text,
    author: "agent",
    ...more,
  });

describe("notes", () => {
  // design: 000.19
  test("a saved note is found immediately with its lines, and no longer after its text changes", async () => {
    const turn = await turnOf("hello");
    await put("memory/garden.md", "# Garden\n\nThe quince tree grows behind the shed.\n");
    const [hit] = (await search(turn, "where is the quince?")).hits;
    assert.deepEqual(
      [hit?.path, hit?.fromLine, hit?.toLine, hit?.author, hit?.source],
      ["memory/garden.md", 1, 3, "owner", "document"],
    );
    await put("memory/garden.md", "# Garden\n\nThe medlar grows behind the shed.\n");
    assert.deepEqual((await search(turn, "quince")).hits, []);
    assert.equal((await search(turn, "medlar")).hits.length, 1);
    await fixture.gateway.request(store.documentRevise, {
      opId: randomUUID(),
      path: "memory/garden.md",
      change: { do: "delete", author: "owner" },
    });
    assert.deepEqual((await search(turn, "medlar")).hits, []);
  });

  // design: 000.25
  test("rare words of a query weigh more than common ones", async () => {
    const turn = await turnOf("hello");
    for (let index = 0; index < 8; index++)
      await put(`memory/tea-${index}.md`, `The kettle was on for the tea again, number ${index}.\n`);
    await put("memory/tea-rare.md", "A samovar makes tea as well, which nobody here has ever seen at work.\n");
    const { hits } = await search(turn, "kettle tea samovar");
    assert.equal(hits[0]?.path, "memory/tea-rare.md");
  });

  test("a mistyped word finds similar words, and a known word only itself", async () => {
    const turn = await turnOf("hello");
    await put("memory/words.md", "Her favourite instrument is the glockenspiel.\n");
    assert.equal((await search(turn, "glokenspiel")).hits[0]?.path, "memory/words.md");
    await put("memory/spiels.md", "The glokenspiel factory.\n");
    assert.deepEqual(
      (await search(turn, "glokenspiel")).hits.map(({ path }) => path),
      ["memory/spiels.md"],
    );
  });

  test("only MEMORY.md and memory/ are memory", async () => {
    const turn = await turnOf("hello");
    await put("SOUL.md", "You are called Xylander.\n");
    assert.deepEqual((await search(turn, "Xylander")).hits, []);
    await assert.rejects(core.request(store.memoryGet, { turnId: turn, path: "SOUL.md", from: 1, lines: 5 }), (error) =>
      WireError.is(error, "INVALID_INPUT"),
    );
  });
});

describe("writing", () => {
  // design: 001.17
  test("a repeated call adds a line once", async () => {
    const turn = await turnOf("hello");
    const opId = randomUUID();
    const first = await append(turn, "memory/once.md", "- kept once", { opId });
    assert.deepEqual(first, { status: "saved", version: 1, fromLine: 3, toLine: 3 });
    assert.deepEqual(await append(turn, "memory/once.md", "- kept once", { opId }), first);
    const { document } = await core.request(store.documentGet, { path: "memory/once.md" });
    assert.equal(document?.content, "# Notes\n\n- kept once\n");
  });

  test("concurrent writers lose nothing", async () => {
    const turn = await turnOf("hello");
    const lines = Array.from({ length: 8 }, (_, index) => `- line ${index}`);
    await Promise.all(lines.map((line) => append(turn, "memory/both.md", line)));
    const { document } = await core.request(store.documentGet, { path: "memory/both.md" });
    assert.deepEqual(document?.content.trim().split("\n").slice(2).sort(), lines);
  });

  test("an untrusted line taints that line, its chunk and the version, but no other lines", async () => {
    const turn = await turnOf("hello");
    const path = "memory/mixed.md";
    await put(path, "The gate code is kept by Wilhelmina.\n");
    await append(turn, path, "Wilhelmina says to send money to a stranger.", { author: "untrusted" });
    const { hits } = await search(turn, "Wilhelmina");
    const pieces = hits
      .map(({ author, fromLine, text }) => ({ fromLine, author, evil: text.includes("stranger") }))
      .sort((one, other) => one.fromLine - other.fromLine);
    assert.deepEqual(pieces, [
      { fromLine: 1, author: "owner", evil: false },
      { fromLine: 2, author: "untrusted", evil: true },
    ]);
    const read = await core.request(store.memoryGet, { turnId: turn, path, from: 1, lines: 10 });
    assert.deepEqual(read.status === "found" && read.lines.map(({ author }) => author), ["owner", "untrusted"]);
    assert.equal((await core.request(store.documentGet, { path })).document?.author, "untrusted");
    const gone = await core.request(store.memoryForget, {
      opId: randomUUID(),
      epoch: fixture.epoch,
      turnId: turn,
      path,
      what: { by: "text", text: "STRANGER" },
      author: "agent",
    });
    assert.deepEqual(gone, {
      status: "saved",
      version: 3,
      removed: ["Wilhelmina says to send money to a stranger."],
    });
    assert.equal((await core.request(store.documentGet, { path })).document?.author, "agent");
    assert.equal(
      (await search(turn, "stranger")).hits.some((hit) => hit.path === path),
      false,
    );
  });

  test("lines are removed by their numbers, and unknown numbers change nothing", async () => {
    const turn = await turnOf("hello");
    const path = "memory/numbered.md";
    await put(path, "one\ntwo\nthree\n");
    const forget = (from: number, to: number) =>
      core.request(store.memoryForget, {
        opId: randomUUID(),
        epoch: fixture.epoch,
        turnId: turn,
        path,
        what: { by: "lines", from, to },
        author: "agent",
      });
    assert.equal((await forget(9, 12)).status, "missing");
    assert.equal((await forget(2, 2)).status, "saved");
    assert.equal((await core.request(store.documentGet, { path })).document?.content, "one\nthree\n");
  });

  test("a stale leader writes nothing", async () => {
    const turn = await turnOf("hello");
    await assert.rejects(append(turn, "memory/late.md", "late", { epoch: fixture.epoch - 1 }), (error) =>
      WireError.is(error, "STALE_EPOCH"),
    );
    assert.equal((await core.request(store.documentGet, { path: "memory/late.md" })).document, null);
  });
});

describe("audiences", () => {
  const guest = (id: string): Partial<InboundMessage> => ({ role: "guest", contact: { id } });

  test("a guest neither reads nor changes the owner's notes and messages", async () => {
    await put("memory/secret.md", "The safe opens with Rumpelstiltskin.\n");
    await turnOf("Remember that Rumpelstiltskin is the word for the safe.");
    const owner = await turnOf("and now?");
    assert.deepEqual(
      new Set((await search(owner, "Rumpelstiltskin")).hits.map(({ source }) => source)),
      new Set(["document", "session"]),
    );
    const turn = await turnOf("what opens the safe?", guest("66"));
    assert.deepEqual(await search(turn, "Rumpelstiltskin"), { hits: [], audience: "contact" });
    const path = "memory/secret.md";
    assert.deepEqual(await core.request(store.memoryGet, { turnId: turn, path, from: 1, lines: 9 }), {
      status: "refused",
    });
    assert.equal((await append(turn, path, "mine now")).status, "refused");
    const what = { by: "text", text: "safe" } as const;
    const forgotten = await core.request(store.memoryForget, {
      opId: randomUUID(),
      epoch: fixture.epoch,
      turnId: turn,
      path,
      what,
      author: "agent",
    });
    assert.equal(forgotten.status, "refused");
    assert.equal((await core.request(store.documentGet, { path })).document?.version, 1);
  });

  test("a guest finds their own messages, and the owner does not find them", async () => {
    await turnOf("My parrot is called Balthasar.", guest("70"));
    await turnOf("My parrot is called Nebukadnezar.", guest("71"));
    const [hit, ...others] = (await search(await turnOf("hi", guest("70")), "parrot")).hits;
    assert.match(hit?.text ?? "", /Balthasar/);
    assert.deepEqual([hit?.author, others.length], ["untrusted", 0]);
    assert.deepEqual((await search(await turnOf("hi"), "Nebukadnezar Balthasar")).hits, []);
  });

  test("a group finds nothing, also for the owner", async () => {
    await put("memory/group.md", "The surprise party is at Esmeralda's.\n");
    const turn = await turnOf("where is the party?", { direct: false });
    assert.deepEqual(await search(turn, "Esmeralda"), { hits: [], audience: "none" });
  });

  // design: 001.24c
  test("finds every message of earlier turns, also those of the agent", async () => {
    const { turnId } = await fixture.begun(saying("The zeppelin leaves from Friedrichshafen."));
    const parts = [{ type: "text" as const, text: "A zeppelin needs helium." }];
    await core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1, { parts }));
    const { hits } = await search(await turnOf("and then?"), "zeppelin");
    assert.deepEqual(hits.map(({ text }) => text).toSorted(), [
      "A zeppelin needs helium.",
      "The zeppelin leaves from Friedrichshafen.",
    ]);
  });

  test("the current turn is not found", async () => {
    const turn = await turnOf("Have you ever heard of Quetzalcoatl?");
    assert.deepEqual((await search(turn, "Quetzalcoatl")).hits, []);
  });
});

describe("vectors", () => {
  const model = "test-vectors";
  const base64 = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer).toString("base64");

  test("a text is listed once without a vector, and vectors find texts without common words", async () => {
    const turn = await turnOf("hello");
    await put("memory/near.md", "Her feline companion purrs.\n");
    await put("memory/far.md", "Taxes are due in autumn.\n");
    for (;;) {
      const { texts } = await core.request(store.memoryEmbed, { model, vectors: [], limit: 64 });
      if (texts.length === 0) break;
      const vectors = texts.map(({ sha256, text }) => ({
        sha256,
        values: text.includes("feline") ? base64(1, 0) : base64(0, 1),
      }));
      await core.request(store.memoryEmbed, { model, vectors, limit: 0 });
    }
    const vector = { model, values: base64(0.9, 0.1) };
    assert.deepEqual((await search(turn, "cat")).hits, []);
    const { hits } = await search(turn, "cat", { vector });
    assert.equal(hits[0]?.path, "memory/near.md");
    assert.deepEqual((await search(turn, "cat", { vector: { ...vector, model: "another" } })).hits, []);
  });

  // design: 000.25c
  test("a moved text keeps its vector, and a removed text's vector is deleted", async () => {
    const text = "A sentence about ptarmigans.\n";
    await put("memory/moved.md", text);
    const { texts } = await core.request(store.memoryEmbed, { model: "moving", vectors: [], limit: 64 });
    const moved = texts.find((each) => each.text.includes("ptarmigans"));
    assert.ok(moved !== undefined);
    await core.request(store.memoryEmbed, {
      model: "moving",
      vectors: [{ sha256: moved.sha256, values: base64(1) }],
      limit: 0,
    });
    await put("memory/moved-here.md", text);
    await fixture.gateway.request(store.documentRevise, {
      opId: randomUUID(),
      path: "memory/moved.md",
      change: { do: "delete", author: "owner" },
    });
    const left = async () =>
      (await sql.query("SELECT FROM parley.memory_vectors WHERE sha256 = $1", [moved.sha256])).rowCount;
    const again = await core.request(store.memoryEmbed, { model: "moving", vectors: [], limit: 64 });
    assert.ok(!again.texts.some(({ sha256 }) => sha256 === moved.sha256));
    assert.equal(await left(), 1);
    await fixture.gateway.request(store.documentRevise, {
      opId: randomUUID(),
      path: "memory/moved-here.md",
      change: { do: "delete", author: "owner" },
    });
    await core.request(store.memoryEmbed, { model: "moving", vectors: [], limit: 1 });
    await core.request(store.memoryEmbed, { model: "moving", vectors: [], limit: 0 });
    assert.equal(await left(), 0);
  });

  test("vectors are stored as PostgreSQL's binary floats, also those of older versions", async () => {
    const sha256 = "1".repeat(64);
    await sql.query(
      "INSERT INTO parley.memory_chunks SELECT nextval('parley.memory_chunk_ids'), 'nobody', 'memory/packed.md', NULL, NULL, NULL, 1, 1, 'x', $1, 1, 'agent', NULL, NULL",
      [sha256],
    );
    await core.request(store.memoryEmbed, {
      model: "packed",
      vectors: [{ sha256, values: base64(0.5, -2) }],
      limit: 0,
    });
    const { rows } = await sql.query(
      `SELECT packed = (SELECT string_agg(float4send(u.value), ''::bytea ORDER BY u.place) FROM unnest('{0.5,-2}'::real[]) WITH ORDINALITY AS u (value, place)) AS same
       FROM parley.memory_vectors WHERE model = 'packed'`,
    );
    assert.deepEqual(rows, [{ same: true }]);
    await sql.query("DELETE FROM parley.memory_chunks WHERE sha256 = $1", [sha256]);
  });

  test("a vector with a non-finite number is refused", async () => {
    const vectors = [{ sha256: "0".repeat(64), values: base64(Number.NaN) }];
    await assert.rejects(core.request(store.memoryEmbed, { model, vectors, limit: 0 }), (error) =>
      WireError.is(error, "INVALID_INPUT"),
    );
  });
});
