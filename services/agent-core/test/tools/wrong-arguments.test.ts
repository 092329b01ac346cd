// Validation of arguments before approval is requested.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { argumentErrors } from "../../src/tools/validate-arguments.ts";

const write = {
  name: "write",
  inputSchema: {
    type: "object",
    properties: { path: { type: "string" }, lines: { type: "array", items: { type: "integer" } } },
    required: ["path"],
    additionalProperties: false,
  },
};

describe("argument validation", () => {
  test("lists each invalid argument with its problem, and the valid names", async () => {
    assert.equal(await argumentErrors(write, '{"path":"a","lines":[1]}'), undefined);
    assert.equal(
      await argumentErrors(write, '{"lines":[1,"x"],"colour":"red"}'),
      `Not run: invalid arguments for write: must have required property 'path'; has no property "colour"; lines.1 must be integer. Valid arguments: path, lines.`,
    );
  });

  test("rejects arguments that are not a JSON object", async () => {
    for (const input of ["{", "[]", "null", '"path"', "3"])
      assert.match((await argumentErrors(write, input)) ?? "", /not a JSON object/, input);
    assert.match((await argumentErrors(write, "")) ?? "", /required property 'path'/, "empty text means no arguments");
  });

  test("validates schemas with unknown keywords as far as possible and skips invalid schemas", async () => {
    const foreign = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { at: { type: "string", format: "moment", "x-hint": 1 } },
    };
    assert.equal(
      await argumentErrors({ name: "mcp__a__b", inputSchema: foreign }, '{"at":"noon","more":1}'),
      undefined,
    );
    assert.match(
      (await argumentErrors({ name: "mcp__a__b", inputSchema: foreign }, '{"at":1}')) ?? "",
      /at must be string/,
    );
    const none = { type: "object", properties: { at: { type: "moment" } } };
    assert.equal(await argumentErrors({ name: "mcp__a__c", inputSchema: none }, '{"at":1}'), undefined);
  });
});
