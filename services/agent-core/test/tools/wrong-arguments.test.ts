// Which arguments a person is not asked about.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { wrongArguments } from "../../src/tools/wrong-arguments.ts";

const write = {
  name: "write",
  inputSchema: {
    type: "object",
    properties: { path: { type: "string" }, lines: { type: "array", items: { type: "integer" } } },
    required: ["path"],
    additionalProperties: false,
  },
};

describe("arguments that cannot work", () => {
  test("are named, each with what is wrong and the names there are", async () => {
    assert.equal(await wrongArguments(write, '{"path":"a","lines":[1]}'), undefined);
    assert.equal(
      await wrongArguments(write, '{"lines":[1,"x"],"colour":"red"}'),
      `The arguments of write are wrong: must have required property 'path'; has no "colour"; lines.1 must be integer. Its arguments are: path, lines. Nothing was run.`,
    );
  });

  test("are also those that are no JSON object", async () => {
    for (const input of ["{", "[]", "null", '"path"', "3"])
      assert.match((await wrongArguments(write, input)) ?? "", /no JSON object/, input);
    assert.match((await wrongArguments(write, "")) ?? "", /required property 'path'/, "nothing is no arguments");
  });

  test("a schema of another draft, with foreign words and formats, holds what can be held; one that is none holds nothing", async () => {
    const foreign = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { at: { type: "string", format: "moment", "x-hint": 1 } },
    };
    assert.equal(
      await wrongArguments({ name: "mcp__a__b", inputSchema: foreign }, '{"at":"noon","more":1}'),
      undefined,
    );
    assert.match(
      (await wrongArguments({ name: "mcp__a__b", inputSchema: foreign }, '{"at":1}')) ?? "",
      /at must be string/,
    );
    const none = { type: "object", properties: { at: { type: "moment" } } };
    assert.equal(await wrongArguments({ name: "mcp__a__c", inputSchema: none }, '{"at":1}'), undefined);
  });
});
