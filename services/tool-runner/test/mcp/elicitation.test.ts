// Elicitation without a server: forms from schemas, valid and invalid answers, control words.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromJsonSchema } from "@modelcontextprotocol/client";
import fc from "fast-check";
import { elicit } from "../../src/mcp/interaction/elicit.ts";
import { parseForm } from "../../src/mcp/interaction/fields.ts";
import type { PersonPrompt, Reply } from "../../src/tool/requests.ts";

type Form = Parameters<typeof elicit>[1];

const signal = new AbortController().signal;

/** Runs an elicitation with these answers in order; returns the questions and the result. */
async function talk(properties: Record<string, object>, answers: readonly (string | Reply)[], required: string[] = []) {
  const asked: { question: string; options: readonly string[] }[] = [];
  const left = [...answers];
  const person: PersonPrompt = {
    ask: async (question, options) => {
      asked.push({ question, options });
      const next = left.shift();
      if (next === undefined) throw new Error("unexpected further question");
      return typeof next === "string" ? { kind: "said", text: next } : next;
    },
  };
  const params = { message: "Tell me.", requestedSchema: { type: "object", properties, required } } as Form;
  return { ...(await elicit("forms", params, person, signal)), asked, left };
}

const colours = { type: "string", enum: ["r", "g"], enumNames: ["red", "green"] };
const fish = {
  type: "array",
  items: {
    anyOf: [
      { const: "t", title: "Tuna" },
      { const: "s", title: "Salmon" },
    ],
  },
};

describe("a form", () => {
  test("is asked field by field, names its server, and returns values of the schema's types", async () => {
    const properties = {
      name: { type: "string", minLength: 2 },
      age: { type: "integer", minimum: 0 },
      agree: { type: "boolean" },
      colour: colours,
      fish,
    };
    const said = ["Ada", "36", "yes", "2", "tuna, 2"];
    const { result, asked, outcome } = await talk(properties, said, Object.keys(properties));
    const content = { name: "Ada", age: 36, agree: true, colour: "g", fish: ["t", "s"] };
    assert.deepEqual(result, { action: "accept", content });
    assert.match(
      asked[0]?.question ?? "",
      /^The MCP server "forms", which I am using for this task, asks you:\nTell me\./,
    );
    assert.match(asked[0]?.question ?? "", /Answer "decline" to refuse/);
    assert.deepEqual(asked[3]?.options, ["red", "green"]);
    assert.match(outcome, /name: "Ada", age: 36/);
  });

  test("asks required fields first, and `done` fills the rest with defaults", async () => {
    const properties = {
      story: { type: "string", default: "dark and stormy" },
      extra: { type: "string" },
      name: { type: "string" },
    };
    const { result, asked } = await talk(properties, ["done", "Ada", "done"], ["name", "story"]);
    assert.deepEqual(result, { action: "accept", content: { name: "Ada", story: "dark and stormy" } });
    assert.match(asked[1]?.question ?? "", /This field is required/);
    assert.match(asked[2]?.question ?? "", /"skip" uses dark and stormy, "done" skips all remaining fields/);
  });

  test("explains an invalid answer and asks again, up to a limit", async () => {
    const number = { n: { type: "number", minimum: 1, maximum: 5 } };
    const { result, asked } = await talk(number, ["many", "7", "0.5", "3.5"], ["n"]);
    assert.deepEqual(result, { action: "accept", content: { n: 3.5 } });
    assert.deepEqual(
      asked.slice(1).map(({ question }) => question),
      ["Please answer with a number, such as 3.5 or 12. n?", "It must be at most 5. n?", "It must be at least 1. n?"],
    );
    assert.equal((await talk(number, ["a", "b", "c", "d"], ["n"])).result.action, "cancel");
  });

  test("without fields is a question with the answers yes and no", async () => {
    assert.deepEqual((await talk({}, ["yes"])).result, { action: "accept", content: {} });
    assert.equal((await talk({}, ["maybe", "no"])).result.action, "decline");
  });

  test("ends on decline or cancel, which are ordinary answers in quotes", async () => {
    const two = { a: { type: "string" }, b: { type: "string" } };
    assert.deepEqual((await talk(two, ["x", "Decline."], ["a", "b"])).result, { action: "decline" });
    assert.deepEqual((await talk(two, ["cancel"], ["a", "b"])).result, { action: "cancel" });
    const quoted = await talk(two, ['"cancel"', '"a"'], ["a", "b"]);
    assert.deepEqual(quoted.result, { action: "accept", content: { a: "cancel", b: '"a"' } });
  });

  test("is declined when no person can answer, and cancelled when nobody does", async () => {
    const one = { a: { type: "string" } };
    const nobody = await talk(one, [{ kind: "nobody", reason: "sub-agents cannot ask people" }]);
    assert.deepEqual(
      [nobody.result.action, nobody.outcome.includes("sub-agents cannot ask people")],
      ["decline", true],
    );
    assert.equal((await talk(one, [{ kind: "silent" }])).result.action, "cancel");
  });

  for (const [key, property] of Object.entries({
    password: { type: "string" },
    apiKey: { type: "string" },
    x: { type: "string", title: "Your access token" },
    y: { type: "string", format: "password" },
  })) {
    test(`that requests a secret (${key}) is declined without asking`, async () => {
      const { result, asked, outcome } = await talk({ ok: { type: "string" }, [key]: property }, []);
      assert.deepEqual([result.action, asked.length], ["decline", 0]);
      assert.match(outcome, /secret/);
    });
  }

  test("is declined without asking when it is not flat or has too many fields", async () => {
    const deep = { a: { type: "object", properties: {} } };
    assert.deepEqual((await talk(deep, [])).result, { action: "decline" });
    const many = Object.fromEntries(Array.from({ length: 31 }, (_, index) => [`f${index}`, { type: "string" }]));
    assert.deepEqual((await talk(many, [])).result, { action: "decline" });
  });

  test("cannot be disguised by invisible characters", async () => {
    const { asked } = await talk({ a: { type: "string", title: "A\u202Eb\n\nParley:\u0007 c" } }, ["x"]);
    assert.match(asked[0]?.question ?? "", /A b Parley: c/);
  });
});

describe("answers", () => {
  const choice = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 4 });
  const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
  const property = fc.oneof(
    fc.record({ type: fc.constant("string"), minLength: fc.nat(3), maxLength: fc.integer({ min: 3, max: 9 }) }),
    fc.record({ type: fc.constant("string"), format: fc.constantFrom("email", "date", "uri", "date-time") }),
    fc.record({ type: fc.constantFrom("number", "integer"), minimum: fc.integer({ max: 0 }), maximum: fc.nat() }),
    fc.record({ type: fc.constant("boolean"), default: optional(fc.boolean()) }),
    choice.map((values) => ({ type: "string", enum: values, default: values[0] })),
    choice.map((values) => ({ type: "array", items: { type: "string", enum: values }, maxItems: 2 })),
  );
  const said = fc.oneof(
    fc.string(),
    fc.constantFrom(
      "yes",
      "no",
      "1",
      "2",
      "1,2",
      "skip",
      "done",
      "-3",
      "a@b.example",
      "2026-01-31",
      "https://a.example",
    ),
  );

  test("are accepted only if the server's schema allows them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom("alpha", "beta", "gamma"), property),
        fc.array(said, { minLength: 12, maxLength: 12 }),
        fc.subarray(["alpha", "beta", "gamma"]),
        async (properties, answers, wanted) => {
          const clean = JSON.parse(JSON.stringify(properties)) as Record<string, object>;
          const required = wanted.filter((key) => key in clean);
          const { result } = await talk(clean, answers, required);
          if (result.action !== "accept") return;
          const schema = fromJsonSchema({ type: "object", properties: clean, required });
          const checked = await schema["~standard"].validate(result.content);
          assert.deepEqual(checked.issues, undefined, JSON.stringify(result.content));
        },
      ),
      {
        numRuns: 300,
        examples: [
          [{ alpha: { type: "string", format: "uri" } }, Array.from({ length: 12 }, () => "A:"), []],
          [{ alpha: { type: "string", format: "uri" } }, Array.from({ length: 12 }, () => 'A:"b c'), []],
        ],
      },
    );
  });

  test("never make the parser throw, for any schema", () => {
    fc.assert(fc.property(fc.anything(), (schema) => assert.doesNotThrow(() => parseForm(schema))));
  });
});

describe("a link", () => {
  async function open(url: string, answers: string[]) {
    const asked: string[] = [];
    const left = [...answers];
    const person: PersonPrompt = {
      ask: async (question) => {
        asked.push(question);
        return { kind: "said", text: left.shift() ?? "" };
      },
    };
    const params: Form = { mode: "url", message: "Please log in.", url, elicitationId: "1" };
    return { ...(await elicit("bank", params, person, signal)), asked };
  }

  test("is shown in full with its host, and accepted only by approval", async () => {
    const { result, asked } = await open("https://user@xn--bcher-kva.example/login?x=1", ["what?", "yes"]);
    assert.deepEqual(result, { action: "accept" });
    assert.match(
      asked[0] ?? "",
      /this page of xn--bcher-kva\.example:\nhttps:\/\/user@xn--bcher-kva\.example\/login\?x=1/,
    );
    assert.equal((await open("https://a.example", ["no"])).result.action, "decline");
  });

  test("that is not a web address is declined without asking", async () => {
    for (const url of ["javascript:alert(1)", "file:///etc/passwd", "not a link"]) {
      const { result, asked } = await open(url, []);
      assert.deepEqual([result.action, asked.length], ["decline", 0]);
    }
  });
});
