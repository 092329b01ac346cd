// Generates docs/reference/settings.md: every key of parley.toml with its type, default, an example and its meaning.
import { ParleySettingsSchema } from "@parley/contracts";
import { z } from "zod";
import { code, table } from "./markdown.ts";
import { exampleFor, type Schema } from "./setting-examples.ts";
import { settingMeanings } from "./setting-meanings.ts";
import { fieldComments } from "./source-comments.ts";

/** One key, such as `tools.exec.timeout_seconds`. `<name>` is a name that the operator chooses. */
export interface SettingEntry {
  readonly path: readonly string[];
  readonly type: string;
  /** JSON text; null: none. */
  readonly fallback: string | null;
  /** TOML. */
  readonly example: string;
}

/** Where the comments of a table are, if not in the file of its name. */
const files: Readonly<Record<string, string>> = {
  output: "agent",
  profiles: "agent",
  subagents: "agent",
  webhooks: "channels",
  channels: "{accounts,channels}",
};

/** Every key of the settings, in the order of the tables. */
export function settingEntries(): SettingEntry[] {
  const schema = z.toJSONSchema(ParleySettingsSchema, { io: "input" }) as Schema;
  return entriesOf(schema, []);
}

function entriesOf(schema: Schema, path: readonly string[]): SettingEntry[] {
  if (isTable(schema)) {
    const named = Object.entries(schema.properties ?? {}).flatMap(([key, each]) => entriesOf(each, [...path, key]));
    const { additionalProperties: other } = schema;
    const chosen = typeof other === "object" ? entriesOf(other, [...path, "<name>"]) : [];
    return [...named, ...chosen];
  }
  const { items } = schema;
  if (items !== undefined && isTable(items)) return entriesOf(items, [...path, "[]"]);
  const fallback = schema.default === undefined ? null : JSON.stringify(schema.default);
  return [{ path, type: typeText(schema), fallback, example: exampleFor(path, schema, fallback) }];
}

function isTable({ properties, additionalProperties }: Schema): boolean {
  return properties !== undefined || typeof additionalProperties === "object";
}

function typeText(schema: Schema): string {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return choices.map(typeText).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((each) => JSON.stringify(each)).join(", ");
  if (schema.items !== undefined) return `list of ${typeText(schema.items)}`;
  const type = String(schema.type ?? "any value");
  const { minimum, maximum, exclusiveMinimum } = schema;
  const low = minimum ?? (exclusiveMinimum === undefined ? undefined : `above ${exclusiveMinimum}`);
  const bound = (value: typeof low) => value !== undefined && Math.abs(Number(value)) < Number.MAX_SAFE_INTEGER;
  if (type !== "integer" && type !== "number") return schema.format === "uri" ? "address" : type;
  if (bound(low) && bound(maximum)) return `${type} ${low} to ${maximum}`;
  return bound(low) ? `${type} from ${low}` : type;
}

/** The meaning that settingMeanings has for a key or, of an account, for the key of every channel. */
function meaningOf(path: readonly string[]): string | undefined {
  const [table, , , ...rest] = path;
  const key = path.join(".").replaceAll(".[]", "[]");
  return settingMeanings[key] ?? (table === "channels" ? settingMeanings[`channels.*.${rest.join(".")}`] : undefined);
}

/** The whole page. */
export function settingsDocument(): string {
  const byTable = Map.groupBy(settingEntries(), ({ path: [table = ""], path }) => (path.length === 1 ? "" : table));
  const sections = [...byTable].map(([name, entries]) => {
    const comments = fieldComments(
      name === "channels" ? "{settings/{accounts,channels},channels/*}.ts" : `settings/${files[name] ?? name}.ts`,
    );
    const rows = entries.map(({ path, type, fallback, example }) => {
      const own = path.at(-1) ?? "";
      return [
        code(path.join(".").replaceAll(".[]", "[]")),
        type,
        fallback === null ? "" : code(fallback),
        code(`${own} = ${example}`),
        meaningOf(path) ?? comments.get(own) ?? "",
      ];
    });
    return `${name === "" ? "## Top level" : `## ${name}`}\n\n${table(["key", "type", "default", "example", "meaning"], rows)}`;
  });
  return `${[
    "# Settings",
    "Generated from `packages/contracts/src/settings` by `npm run docs`; a test fails when it is stale.",
    "Every key of `parley.toml`. [Configuration](../configuration.md) explains the file, its precedence and presets; [channels](../channels.md) describes accounts. `<name>` is a name of your choice, `[]` an entry of a list of tables. A key without a default is left out unless you set it. Keys with `_env` contain the name of a variable, never the secret.",
    ...sections,
  ].join("\n\n")}\n`;
}
