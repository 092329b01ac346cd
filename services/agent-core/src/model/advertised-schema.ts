// The schema of a tool's arguments as the model receives it: without what costs tokens and tells it nothing. Pure.
import type { ToolDescriptor } from "@parley/contracts";

type Schema = ToolDescriptor["inputSchema"];

/** Keywords whose values map free names to schemas. */
const named = new Set(["properties", "patternProperties", "$defs", "definitions"]);
/** Keywords whose values are data, not schemas. */
const data = new Set(["default", "const", "enum", "examples", "required"]);

/**
 * A copy without `additionalProperties: false`, limits of lengths, and arguments marked `modelSchema: "hidden"` (accepted names of
 * other agent designs). Of arguments marked `modelSchema: "name_only"` the description is omitted: the name says the same. The tool
 * still validates against its full schema.
 */
export function advertisedSchema(schema: Schema): Schema {
  const nameOnly = schema["modelSchema"] === "name_only";
  return mapEntries(schema, (key, value) => {
    if (key === "modelSchema" || (nameOnly && key === "description") || isVacuous(key, value)) return undefined;
    if (data.has(key)) return value;
    return named.has(key) && isSchema(value) ? mapEntries(value, (_, each) => advertisedPart(each)) : inner(value);
  });
}

function advertisedPart(property: unknown): unknown {
  return isSchema(property) && property["modelSchema"] === "hidden" ? undefined : inner(property);
}

function inner(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inner);
  return isSchema(value) ? advertisedSchema(value) : value;
}

/** Without the entries for which `map` returns undefined. */
function mapEntries(schema: Schema, map: (key: string, value: unknown) => unknown): Schema {
  const entries = Object.entries(schema).map(([key, value]) => [key, map(key, value)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Bounds that generators add to each integer, lengths that a model does not count, and schemas that match everything. */
function isVacuous(key: string, value: unknown): boolean {
  switch (key) {
    case "maxLength":
    case "propertyNames":
      return true;
    case "minLength":
      return value === 1;
    case "maximum":
      return value === Number.MAX_SAFE_INTEGER;
    case "minimum":
      return value === Number.MIN_SAFE_INTEGER;
    case "additionalProperties":
      return value === false || (isSchema(value) && Object.keys(value).length === 0);
    default:
      return false;
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
