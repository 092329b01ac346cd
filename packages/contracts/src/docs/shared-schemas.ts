// Extracts schemas that occur in several places of a document and names them, so that the document shows each of them once.

/** A JSON Schema as plain JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A repeated schema is named if its JSON has at least this many characters; shorter ones are easier to read in place. */
const minNamedChars = 120;

interface NamedSchemas {
  /** The given schemas, with `{"$ref": "#Name"}` in place of each named schema. */
  roots: readonly Json[];
  /** By name; they refer to each other in the same way. */
  shared: ReadonlyMap<string, Json>;
}

/**
 * Names every object, union or enum that occurs in more than one place, the largest first. `known` maps the JSON of a schema to
 * its name; other schemas are named after their discriminating `type`, or after the field that contains them.
 */
export function nameSharedSchemas(roots: readonly Json[], known: ReadonlyMap<string, string>): NamedSchemas {
  let rest = roots;
  let shared = new Map<string, Json>();
  for (;;) {
    const repeated = largestRepeated([...rest, ...shared.values()]);
    if (repeated === null) return { roots: rest, shared };
    const name =
      known.get(repeated.json) ?? uniqueName(pascalCase(repeated.proposedName), [...known.values(), ...shared.keys()]);
    const withReference = (value: Json): Json => replaceSchema(value, repeated.json, { $ref: `#${name}` });
    rest = rest.map(withReference);
    shared = new Map([...shared].map(([each, schema]) => [each, withReference(schema)]));
    shared.set(name, repeated.schema);
  }
}

interface RepeatedSchema {
  json: string;
  schema: Json;
  proposedName: string;
  count: number;
}

function largestRepeated(trees: readonly Json[]): RepeatedSchema | null {
  const found = new Map<string, RepeatedSchema>();
  const visit = (value: Json, field: string): void => {
    if (typeof value !== "object" || value === null) return;
    const json = JSON.stringify(value);
    if (json.length < minNamedChars) return;
    if (isSchema(value)) {
      const previous = found.get(json);
      const proposedName = previous?.proposedName || (typeValue(value) ?? field);
      found.set(json, { json, schema: value, proposedName, count: (previous?.count ?? 0) + 1 });
    }
    for (const [key, each] of Object.entries(value)) visit(each, nameAt(value, key, field));
  };
  // A root occurs only once, but the values in it can repeat.
  for (const tree of trees) visit(tree, "");
  return [...found.values()]
    .filter(({ count, proposedName }) => count > 1 && proposedName !== "")
    .reduce<RepeatedSchema | null>(
      (best, each) => (best === null || each.json.length > best.json.length ? each : best),
      null,
    );
}

/** Objects with fields, unions and enums, but not nullable wrappers. */
function isSchema(value: Json): boolean {
  if (!isRecord(value)) return false;
  const union = value["anyOf"] ?? value["oneOf"];
  if (Array.isArray(union)) return !union.some((each: Json) => isRecord(each) && each["type"] === "null");
  return value["enum"] !== undefined || (value["type"] === "object" && value["properties"] !== undefined);
}

/** The discriminating `type` value of a union member. */
function typeValue(value: Json): string | undefined {
  const properties = isRecord(value) ? value["properties"] : undefined;
  const type = isRecord(properties) ? properties["type"] : undefined;
  const kind = isRecord(type) ? type["const"] : undefined;
  return typeof kind === "string" ? kind : undefined;
}

/** Nested schemas are named after their field; JSON Schema keywords and list positions are ignored. */
function nameAt(parent: Json, key: string, field: string): string {
  if (key === "items") return field.replace(/s$/, "");
  const words = ["anyOf", "oneOf", "allOf", "properties", "additionalProperties", "propertyNames"];
  return Array.isArray(parent) || words.includes(key) ? field : key;
}

function replaceSchema(value: Json, json: string, reference: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (JSON.stringify(value) === json) return reference;
  if (!isRecord(value)) return value.map((each) => replaceSchema(each, json, reference));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaceSchema(each, json, reference)]));
}

function uniqueName(name: string, taken: readonly string[]): string {
  let free = name;
  for (let n = 2; taken.includes(free); n += 1) free = `${name}${n}`;
  return free;
}

function pascalCase(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

function isRecord(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
