// `tool_search` finds deferred tools, whose definitions are not in the prompt; `tool_call` calls them.
import { nearestName, type ToolDescriptor } from "@parley/contracts";
import MiniSearch from "minisearch";
import { z } from "zod";
import { advertisedSchema } from "../model/advertised-schema.ts";
import { callToolName } from "../prompt/indirect-calls.ts";
import { localTool, type LocalTool } from "./local-tool.ts";

export const searchToolName = "tool_search";

/** The deferred tools; `find` accepts names and aliases. */
interface Searchable {
  /** The tools that a query searches. */
  readonly descriptors: readonly ToolDescriptor[];
  find(name: string): ToolDescriptor | undefined;
}

const select = "select:";
const maxFound = 20;
/** Maximum characters of the definitions in one result; tools beyond it are listed by name. */
const maxAnswerChars = 30_000;

const howTo = `Call a tool with ${callToolName}, or directly by its name.`;

/** `listed`: the names of the deferred tools. */
export function searchDescription(listed: string): string {
  const text = `Find a tool that is not in your list and get its definition.`;
  return listed === "" ? text : `${text}\n\nTools available by search:\n${listed}`;
}

export function toolSearchTool(tools: Searchable): LocalTool {
  let index: MiniSearch<Entry> | undefined;
  return localTool({
    name: searchToolName,
    aliases: ["ToolSearch"],
    summary: "Find a tool that is not in your list of tools.",
    description: searchDescription(""),
    input: z.object({
      query: z.string().trim().min(1).max(500).describe(`What the tool should do, or ${select}name,name.`),
      limit: z
        .number()
        .int()
        .min(1)
        .max(maxFound)
        .default(5)
        .describe("Maximum number of tools in the result.")
        .meta({ modelSchema: "hidden" }),
    }),
    examples: [{ query: "remind me later" }, { query: `${select}cron,sessions_list` }],
    class: "pure",
    readOnly: true,
    risk: "none",
    effects: [],
    run({ query, limit }) {
      if (query.startsWith(select)) return selected(tools, query.slice(select.length));
      index ??= indexOf(tools.descriptors);
      const found = index
        .search(query)
        .toSorted((a, b) => b.score - a.score || (String(a.id) < String(b.id) ? -1 : 1))
        .flatMap(({ id }) => tools.find(String(id)) ?? [])
        .slice(0, limit);
      if (found.length > 0) return { status: "done", content: definitions(found) };
      return {
        status: "done",
        content: `No tool matches "${query}". Try other words, or one of the listed names.`,
      };
    },
  });
}

/** Valid indirect calls are unwrapped before they become steps, so only calls without a valid inner call run this tool. */
export const callTool = localTool({
  name: callToolName,
  aliases: [],
  summary: "Call a tool that is not in your list of tools.",
  description: `Call a tool found with ${searchToolName}.`,
  input: z.object({
    tool: z.string().describe("The tool's name.").meta({ modelSchema: "name_only" }),
    input: z.record(z.string(), z.unknown()).describe("Its arguments.").meta({ modelSchema: "name_only" }),
  }),
  examples: [{ tool: "cron", input: { action: "list" } }],
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: [],
  run: () => ({
    status: "failed",
    content: `Invalid call: \`tool\` must be a tool's name (letters, digits, _ and -), and \`input\` an object with its arguments.`,
  }),
});

interface Entry {
  id: string;
  name: string;
  summary: string;
  description: string;
  arguments: string;
}

/** Words that do not distinguish tools. */
const stopWords = new Set(
  "a an and any as at be by can do for from get i in into is it its me my of on or some something that the this to tool use want what with".split(
    " ",
  ),
);

const Shape = z.object({ properties: z.record(z.string(), z.unknown()).catch({}) });

function indexOf(tools: readonly ToolDescriptor[]): MiniSearch<Entry> {
  const index = new MiniSearch<Entry>({
    fields: ["name", "summary", "description", "arguments"],
    processTerm: (term) => {
      const word = term.toLowerCase();
      return stopWords.has(word) ? null : word;
    },
    tokenize: (text) => text.replaceAll(/([a-z])([A-Z])/g, "$1 $2").split(/[^\p{L}\p{N}]+/u),
    searchOptions: {
      boost: { name: 4, summary: 2 },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => term.length > 5 && 0.2,
    },
  });
  index.addAll(
    tools.map(({ name, aliases, summary, description, inputSchema }) => ({
      id: name,
      name: [name, ...aliases].join(" "),
      summary,
      description,
      arguments: Object.keys(Shape.parse(inputSchema).properties).join(" "),
    })),
  );
  return index;
}

function selected(tools: Searchable, list: string) {
  const names = list.split(",").map((name) => name.trim());
  const requested = names.filter((name) => name !== "").slice(0, maxFound);
  const found = new Set(requested.flatMap((name) => tools.find(name) ?? []));
  const known = tools.descriptors.map(({ name }) => name);
  const missing = requested.flatMap((name) => {
    if (tools.find(name) !== undefined) return [];
    const near = nearestName(name, known);
    return [`There is no tool ${name}${near === null ? "" : `; did you mean ${near}?`}${near === null ? "." : ""}`];
  });
  const content = [...(found.size === 0 ? [] : [definitions([...found])]), ...missing].join("\n\n");
  return {
    status: found.size === 0 ? ("failed" as const) : ("done" as const),
    content: content === "" ? `No tool name after ${select}` : content,
  };
}

/** The full definitions that fit, at least one, and the names of the other tools. */
function definitions(tools: readonly ToolDescriptor[]): string {
  const texts: string[] = [];
  let chars = 0;
  for (const { name, description, inputSchema, examples } of tools) {
    const text = JSON.stringify({ name, description, input_schema: advertisedSchema(inputSchema), examples });
    chars += text.length;
    if (texts.length > 0 && chars > maxAnswerChars) break;
    texts.push(text);
  }
  const left = tools.slice(texts.length).map(({ name }) => name);
  return [
    ...texts,
    ...(left.length === 0 ? [] : [`Omitted for lack of space: ${left.join(", ")}. Get them with ${select}.`]),
    howTo,
  ].join("\n\n");
}
