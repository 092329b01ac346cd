// What of a tool's schema the model receives.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { advertisedSchema } from "../src/model/advertised-schema.ts";

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input" });

test("leaves out aliases, limits of lengths and descriptions that repeat the name", () => {
  const schema = z.strictObject({
    path: z.string().min(1).max(100).describe("The file."),
    file_path: z.string().optional().describe("Alias of `path`.").meta({ modelSchema: "hidden" }),
    limit: z.number().int().min(1).optional().describe("The limit.").meta({ modelSchema: "name_only" }),
    items: z.array(z.strictObject({ id: z.number().int() })).max(3),
  });
  const { $schema: _, ...advertised } = advertisedSchema(schemaOf(schema));
  assert.deepEqual(advertised, {
    type: "object",
    properties: {
      path: { type: "string", description: "The file." },
      limit: { type: "integer", minimum: 1 },
      items: {
        maxItems: 3,
        type: "array",
        items: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
      },
    },
    required: ["path", "items"],
  });
});

test("keeps arguments and values that are named like keywords of JSON Schema", () => {
  const value = { maxLength: 5, additionalProperties: false };
  const properties = { maxLength: { type: "number" }, modelSchema: { type: "string" }, properties: { default: value } };
  assert.deepEqual(advertisedSchema({ type: "object", properties }), { type: "object", properties });
});

test("keeps the schema of values with free names", () => {
  const advertised = advertisedSchema(schemaOf(z.record(z.string(), z.number())));
  assert.deepEqual(advertised["additionalProperties"], { type: "number" });
});
