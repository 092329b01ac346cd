// docs/tools.md, from the tools themselves, with the settings' defaults: what the document says is what the model is shown.
import type { ToolDescriptor } from "@parley/contracts";
import { z } from "zod";

/** A tool as the document shows it. */
interface DescribedTool {
  descriptor: ToolDescriptor;
  /** Bounds of its arguments, work and result, a sentence each. */
  limits: readonly string[];
}

/** The tools of one service. */
export interface Part {
  /** Who carries them out, as a heading. */
  title: string;
  /** One paragraph on what they have in common, and where they come from. */
  about: string;
  tools: readonly DescribedTool[];
}

/** The whole document: a table of each part first, then every tool by its name. */
export function toolsDocument(parts: readonly Part[]): string {
  return [
    "# Tools",
    "Generated from the tools themselves by `npm run docs`; a test fails when it is stale. Numbers are those of the default settings. Tools of MCP servers come beside these: [mcp.md](mcp.md).",
    "*Class* says what happens after a crash: `pure` calls are made again, `idempotent` ones with the same key, `once` is never started twice, and the model is told that its outcome is unknown. *Risk* is what permissions go by. A call by another name that is understood is the same call.",
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
  return ["| tool | what it does | class | risk |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function section({ descriptor, limits }: DescribedTool): string {
  const { name, aliases, description, class: toolClass, risk, readOnly, effects, resource, timeoutMs } = descriptor;
  const facts = [
    `class ${toolClass}`,
    `risk ${risk}`,
    readOnly ? "reads only" : "changes things",
    ...(effects.length === 0 ? [] : [`effects: ${effects.join(", ")}`]),
    ...(resource.kind === "none"
      ? []
      : [`takes turns by ${resource.kind}${resource.argument === undefined ? "" : ` (\`${resource.argument}\`)`}`]),
    `at most ${timeoutMs / 1_000} s`,
  ];
  return [
    `## ${name}`,
    description,
    `${facts.join(" · ")}${aliases.length === 0 ? "" : ` · also understood: ${aliases.map((alias) => `\`${alias}\``).join(", ")}`}`,
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
  if (rows.length === 0) return "It takes no arguments.";
  return ["| argument | type | needed | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
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

/** The bounds of an integer that somebody has set: JSON Schema always has those of what a number can be. */
function rangeOf({ minimum, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER }: Parameter): string {
  const smallest = minimum ?? (exclusiveMinimum === undefined ? Number.MIN_SAFE_INTEGER : exclusiveMinimum + 1);
  const from = smallest === Number.MIN_SAFE_INTEGER ? "" : ` ${smallest}`;
  if (maximum === Number.MAX_SAFE_INTEGER) return from === "" ? "integer" : `integer from${from}`;
  return `integer${from} to ${maximum}`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
