// Gives schemas that stand in several places a name, so that a document shows each of them once.

/** A JSON Schema as plain JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Characters of JSON from which a repeated schema is worth a name of its own: below, the reference reads no easier. */
const worthANameChars = 120;

interface NamedSchemas {
  /** As they were given, with `{"$ref": "#Name"}` in place of each schema that has a name. */
  roots: readonly Json[];
  /** By name; they refer to each other in the same way. */
  shared: ReadonlyMap<string, Json>;
}

/**
 * Names every object, union or list of words that stands in more than one place, the largest first. `known` has names for
 * schemas as JSON; another one is called after the `type` that tells it from others, or after the field it stands in.
 */
export function nameShared(roots: readonly Json[], known: ReadonlyMap<string, string>): NamedSchemas {
  let rest = roots;
  let shared = new Map<string, Json>();
  for (;;) {
    const repeated = largestRepeated([...rest, ...shared.values()]);
    if (repeated === null) return { roots: rest, shared };
    const name = known.get(repeated.json) ?? freeName(pascal(repeated.called), [...known.values(), ...shared.keys()]);
    const withReference = (value: Json): Json => replaced(value, repeated.json, { $ref: `#${name}` });
    rest = rest.map(withReference);
    shared = new Map([...shared].map(([each, schema]) => [each, withReference(schema)]));
    shared.set(name, repeated.schema);
  }
}

interface Found {
  json: string;
  schema: Json;
  called: string;
  count: number;
}

function largestRepeated(forest: readonly Json[]): Found | null {
  const found = new Map<string, Found>();
  const look = (value: Json, field: string): void => {
    if (typeof value !== "object" || value === null) return;
    const json = JSON.stringify(value);
    if (json.length < worthANameChars) return;
    if (isSchema(value)) {
      const before = found.get(json);
      const called = before?.called || (kindOf(value) ?? field);
      found.set(json, { json, schema: value, called, count: (before?.count ?? 0) + 1 });
    }
    for (const [key, each] of Object.entries(value)) look(each, nameAt(value, key, field));
  };
  // A definition is in one place already: only what it holds can be a repetition.
  for (const tree of forest) look(tree, "");
  return [...found.values()]
    .filter(({ count, called }) => count > 1 && called !== "")
    .reduce<Found | null>((best, each) => (best === null || each.json.length > best.json.length ? each : best), null);
}

/** Objects with fields, unions, lists of words; not what is only another schema or null. */
function isSchema(value: Json): boolean {
  if (!isRecord(value)) return false;
  const union = value["anyOf"] ?? value["oneOf"];
  if (Array.isArray(union)) return !union.some((each: Json) => isRecord(each) && each["type"] === "null");
  return value["enum"] !== undefined || (value["type"] === "object" && value["properties"] !== undefined);
}

/** The value of `type` that tells an object from its neighbours in a union. */
function kindOf(value: Json): string | undefined {
  const properties = isRecord(value) ? value["properties"] : undefined;
  const type = isRecord(properties) ? properties["type"] : undefined;
  const kind = isRecord(type) ? type["const"] : undefined;
  return typeof kind === "string" ? kind : undefined;
}

/** What is below is called after the field it stands in: JSON Schema's own words and places in lists say nothing. */
function nameAt(parent: Json, key: string, field: string): string {
  if (key === "items") return field.replace(/s$/, "");
  const words = ["anyOf", "oneOf", "allOf", "properties", "additionalProperties", "propertyNames"];
  return Array.isArray(parent) || words.includes(key) ? field : key;
}

function replaced(value: Json, json: string, reference: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (JSON.stringify(value) === json) return reference;
  if (!isRecord(value)) return value.map((each) => replaced(each, json, reference));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaced(each, json, reference)]));
}

function freeName(name: string, taken: readonly string[]): string {
  let free = name;
  for (let n = 2; taken.includes(free); n += 1) free = `${name}${n}`;
  return free;
}

function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

function isRecord(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
