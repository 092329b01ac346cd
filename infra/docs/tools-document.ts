// Generates docs/tools.md from the tool descriptors with default settings: the document contains what the model receives.
import type { ToolDescriptor } from "@parley/contracts";
import { z } from "zod";

/** The data of a tool in the document. */
interface DescribedTool {
  descriptor: ToolDescriptor;
  /** Limits of its arguments, work and result, one sentence each. */
  limits: readonly string[];
}

/** The tools of one service. */
export interface Part {
  /** The heading. */
  title: string;
  /** One paragraph: what the tools have in common, and their source folder. */
  about: string;
  tools: readonly DescribedTool[];
}

/** The whole document: a table for each part, then every tool by name. */
export function toolsDocument(parts: readonly Part[]): string {
  return [
    "# Tools",
    "Generated from the tool descriptors by `npm run docs`; a test fails when it is stale. Numbers are those of the default settings. MCP servers add further tools: [mcp.md](mcp.md).",
    "*Class* is the effect class, which applies after a crash: `pure` calls run again, `idempotent` calls run again with the same key, and `once` calls never start twice; the model receives an unknown outcome. Permissions depend on *risk*. A call by an alias is the same call.",
    ...parts.flatMap(({ title, about, tools }) => [`## ${title}`, about, summaryTable(byName(tools))]),
    ...byName(parts.flatMap(({ tools }) => tools)).map(section),
    "",
  ].join("\n\n");
}

function byName(tools: readonly DescribedTool[]): DescribedTool[] {
  return tools.toSorted((a, b) => (a.descriptor.name < b.descriptor.name ? -1 : 1));
}

function summaryTable(tools: readonly DescribedTool[]): string {
  const rows = tools.map(
    ({ descriptor: { name, summary, class: toolClass, risk } }) =>
      `| [\`${name}\`](#${name}) | ${cell(summary)} | ${toolClass} | ${risk} |`,
  );
  return ["| tool | description | class | risk |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function section({ descriptor, limits }: DescribedTool): string {
  const { name, aliases, description, class: toolClass, risk, readOnly, effects, resource, timeoutMs } = descriptor;
  const facts = [
    `class ${toolClass}`,
    `risk ${risk}`,
    readOnly ? "read-only" : "makes changes",
    ...(effects.length === 0 ? [] : [`effects: ${effects.join(", ")}`]),
    ...(resource.kind === "none"
      ? []
      : [`serialized by ${resource.kind}${resource.argument === undefined ? "" : ` (\`${resource.argument}\`)`}`]),
    `at most ${timeoutMs / 1_000} s`,
  ];
  return [
    `## ${name}`,
    description,
    `${facts.join(" · ")}${aliases.length === 0 ? "" : ` · aliases: ${aliases.map((alias) => `\`${alias}\``).join(", ")}`}`,
    parameterTable(descriptor.inputSchema),
    ...(descriptor.examples ?? []).map((example) => `\`\`\`json\n${JSON.stringify(example)}\n\`\`\``),
    ...(limits.length === 0 ? [] : [limits.map((limit) => `- ${limit}`).join("\n")]),
  ].join("\n\n");
}

const Parameter = z.object({
  type: z.string().optional(),
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  maximum: z.number().optional(),
  maxLength: z.number().optional(),
  maxItems: z.number().optional(),
  get items() {
    return Parameter.optional();
  },
  get anyOf() {
    return z.array(Parameter).optional();
  },
  get properties() {
    return z.record(z.string(), Parameter).optional();
  },
  required: z.array(z.string()).default([]),
  description: z.string().optional(),
});
type Parameter = z.infer<typeof Parameter>;

function parameterTable(schema: Record<string, unknown>): string {
  const { properties = {}, required } = Parameter.parse(schema);
  const rows = Object.entries(properties).map(
    ([name, parameter]) =>
      `| \`${name}\` | ${typeOf(parameter)} | ${required.includes(name) ? "yes" : ""} | ${cell(parameter.description ?? "")} |`,
  );
  if (rows.length === 0) return "No arguments.";
  return ["| argument | type | required | description |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function typeOf(parameter: Parameter): string {
  const { type = "", enum: values, anyOf, items, properties, required, maxItems, maxLength } = parameter;
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(" ");
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" or ");
  if (type === "array" && items !== undefined) {
    return `${maxItems === undefined ? "list" : `at most ${maxItems}`} of: ${typeOf(items)}`;
  }
  if (type === "object" && properties !== undefined) {
    const fields = Object.entries(properties).map(
      ([name, field]) => `\`${name}\`${required.includes(name) ? "" : "?"} ${typeOf(field)}`,
    );
    return `{ ${fields.join("; ")} }`;
  }
  if (type === "integer") return rangeOf(parameter);
  return maxLength === undefined ? type : `${type}, at most ${maxLength} characters`;
}

/** The explicit bounds of an integer: JSON Schema also has the implicit bounds of safe integers. */
function rangeOf({ minimum, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER }: Parameter): string {
  const smallest = minimum ?? (exclusiveMinimum === undefined ? Number.MIN_SAFE_INTEGER : exclusiveMinimum + 1);
  const from = smallest === Number.MIN_SAFE_INTEGER ? "" : ` ${smallest}`;
  if (maximum === Number.MAX_SAFE_INTEGER) return from === "" ? "integer" : `integer from${from}`;
  return `integer${from} to ${maximum}`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
