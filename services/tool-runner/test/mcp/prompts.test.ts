// Matching of typed prompt names and arguments.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { argumentsOf, findByTypedName, typedName } from "../../src/mcp/prompts.ts";

const city = { name: "city", required: true };
const state = { name: "state" };

describe("the arguments of a prompt", () => {
  const values = (words: string[]) => argumentsOf({ arguments: [city, state] }, words);

  test("are given by name, or in order with the remaining words for the last one", () => {
    assert.deepEqual(values(["state=NY", "city=New York"]), { values: { city: "New York", state: "NY" } });
    assert.deepEqual(values(["Paris"]), { values: { city: "Paris" } });
    assert.deepEqual(values(["Paris", "the", "French", "one"]), { values: { city: "Paris", state: "the French one" } });
  });

  test("are positional when not every word names an argument", () => {
    assert.deepEqual(values(["city=x", "and=more"]), { values: { city: "city=x", state: "and=more" } });
  });

  test("are reported when missing or too many", () => {
    assert.deepEqual(values([]), { problem: "it requires city" });
    assert.deepEqual(values(["state=NY"]), { problem: "it requires city" });
    assert.deepEqual(argumentsOf({}, ["x"]), { problem: "it takes no arguments" });
    assert.deepEqual(argumentsOf({}, []), { values: {} });
  });
});

describe("the lookup of a prompt", () => {
  const find = (names: string[], said: string) => findByTypedName(names, (name) => name, said);

  test("prefers the exact name over the typed form", () => {
    assert.equal(find(["Code Review", "other"], "code_review"), "Code Review");
    assert.equal(find(["review", "Review"], "Review"), "Review");
    assert.equal(find(["review", "Review"], "REVIEW"), undefined, "ambiguous name");
  });

  test("matches the typed form only if it is unique", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 8 }), (names) => {
        for (const name of names) {
          const alone = names.filter((each) => typedName(each) === typedName(name)).length === 1;
          if (alone) assert.equal(find(names, typedName(name)), name);
        }
      }),
    );
  });
});
