// All adapters against damaged updates, names that imitate an allow-listed id, and hostile texts to send.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { channelEntries, peopleSettings } from "@parley/contracts";
import { propertyRuns } from "@parley/testing/property-runs";
import fc from "fast-check";
import { z } from "zod";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { lengthOf } from "../src/channels/text/measure.ts";
import { decideAccess } from "../src/ingress/access-policy.ts";
import { recordedUpdates, type Input } from "./support/recorded-updates.ts";

/** With eight adapters 100,000 updates. */
const fullRuns = 12_500;
const people = z.object(peopleSettings);

interface Edit {
  at: number;
  how: "remove" | "replace" | "repeat" | "wrap";
  value: unknown;
}

const hostile = fc.oneof(
  fc.constantFrom<unknown>(null, "", "\0", "\ud800", "\u202e", -1, 0.5, 2 ** 53, Number.MAX_VALUE, true, [], {}),
  fc.constantFrom<unknown>("__proto__", "constructor", "../../x", "<@U0BOSS>", "1".repeat(400), "> ".repeat(5_000)),
  fc.constant<unknown>(JSON.parse('{"__proto__":{"id":"42","is_bot":false},"id":"42"}')),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.jsonValue({ maxDepth: 2 }),
);
const edits: fc.Arbitrary<Edit[]> = fc.array(
  fc.record({ at: fc.nat(), how: fc.constantFrom("remove", "replace", "repeat", "wrap"), value: hostile }),
  { minLength: 1, maxLength: 4 },
);

/** Every field and element of a JSON value. */
function placesIn(value: unknown): [Record<string, unknown>, string][] {
  if (typeof value !== "object" || value === null) return [];
  const parent = value as Record<string, unknown>;
  const keys = Object.keys(parent).filter((key) => key !== "__proto__");
  return keys.flatMap((key) => [[parent, key], ...placesIn(parent[key])]);
}

function damaged(update: unknown, of: readonly Edit[]): unknown {
  const copy = structuredClone(update);
  for (const { at, how, value } of of) {
    const places = placesIn(copy);
    const [parent, key] = places[at % Math.max(1, places.length)] ?? [];
    if (parent === undefined || key === undefined) break;
    if (how === "remove") delete parent[key];
    else if (how === "replace") parent[key] = structuredClone(value);
    else parent[key] = how === "wrap" ? { [key]: parent[key] } : [parent[key], parent[key]];
  }
  return copy;
}

function named(update: unknown, name: string): unknown {
  if (typeof update === "string") return update.replaceAll("NAME", name);
  if (Array.isArray(update)) return update.map((each) => named(each, name));
  if (typeof update !== "object" || update === null) return update;
  return Object.fromEntries(Object.entries(update).map(([key, value]) => [key, named(value, name)]));
}

const verdicts = (inputs: readonly Input[], policy: z.output<typeof people>) =>
  inputs.map(({ contact, conversation, group, direct }) => {
    const sender = { contactId: contact.id, conversation, group, direct, addressed: true };
    return decideAccess(policy, sender, null).verdict;
  });

for (const [channel, { updates, read, person, owner, group }] of Object.entries(recordedUpdates)) {
  describe(`what ${channel} delivers`, () => {
    test("is read or refused, and never crashes the adapter, when it is damaged", async () => {
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...updates), edits, async (update, of) => {
          for (const { externalId, conversation, contact, replyTo } of await read(damaged(update, of))) {
            assert.ok(externalId !== "" && conversation !== "");
            assert.equal(typeof contact.id, "string");
            assert.deepEqual([replyTo.channel, replyTo.account], [channel, "main"]);
          }
        }),
        { numRuns: propertyRuns(fullRuns) },
      );
    });

    test("gives a name that imitates the owner or a listed group no access", async () => {
      const strict = people.parse({ owners: [owner], allow_from: [owner], groups: [group], dm_policy: "allowlist" });
      let count = 0;
      for (const name of [owner, group, person, "owner", `@${owner}`]) {
        for (const update of updates) {
          const inputs = await read(named(update, name));
          count += inputs.length;
          for (const verdict of verdicts(inputs, strict)) assert.equal(verdict, "ignore", JSON.stringify(update));
        }
      }
      assert.ok(count >= updates.length, "the updates are read");
      const known = await Promise.all(updates.map(async (update) => read(named(update, "x"))));
      const admitted = verdicts(known.flat(), people.parse({ owners: [person] }));
      assert.ok(admitted.includes("let_in"), "the person's id is what counts");
    });
  });
}

test("every channel divides any text into messages within its limit", () => {
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 30 }),
    fc.constantFrom(
      "**",
      "_",
      "`",
      "\n```\n",
      "\n> ",
      "||",
      "[a](http://b.c)",
      "\n| a |\n|---|\n| 1 |\n",
      "<b>",
      "😀",
      "\ud83d",
    ),
  );
  const texts = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(
      fc.constantFrom(...channelEntries.map(({ name, capabilities }) => ({ name, capabilities }))),
      texts,
      fc.integer({ min: 100, max: 300 }),
      ({ name, capabilities }, text, maxLength) => {
        const { text: limits } = capabilities;
        const parts = new AnswerParts(limits);
        for (let position: number | null = 0; position !== null;) {
          const part = parts.at("answer", text, position, maxLength);
          if (part === null) break;
          const counted = limits.lengthCountsMarkup ? part.rendered.text : part.rendered.plain;
          assert.ok(lengthOf(counted, limits.lengthUnit) <= maxLength, name);
          assert.ok(part.next === null || part.next > position);
          position = part.next;
        }
      },
    ),
    { numRuns: propertyRuns(fullRuns) },
  );
});
