// The tables of docs/permissions.md: the code's authorization decisions by role, tool, taint and preset.
import { parseSettings } from "@parley/chassis";
import { presetNames, type ParleySettings, type ToolDescriptor } from "@parley/contracts";
import { parseCall } from "../../services/agent-core/src/policy/parsed-call.ts";
import { decidePermission } from "../../services/agent-core/src/policy/decide.ts";
import { rulesFor, principalOf } from "../../services/agent-core/src/policy/principal.ts";
import { startsSubagents, type PermissionTool } from "../../services/agent-core/src/policy/tool-traits.ts";
import { toolParts } from "./tools.ts";

/** The lines of docs/permissions.md that enclose the tables. */
const tableMarkers = {
  begin: "<!-- Begin of the generated tables: npm run docs -->",
  end: "<!-- End of the generated tables -->",
};

/** An example of one kind of calls. */
export interface SampleCall {
  /** Its name in the table. */
  label: string;
  tool: PermissionTool;
  input: Readonly<Record<string, unknown>>;
}

/** The columns of the table. `trust`: of the turn. Turns of guests and webhooks always contain untrusted content. */
export const columns = [
  { title: "owner", trust: "owner", tainted: false },
  { title: "owner, tainted", trust: "owner", tainted: true },
  { title: "user", trust: "user", tainted: false },
  { title: "user, tainted", trust: "user", tainted: true },
  { title: "guest", trust: "guest", tainted: true },
  { title: "webhook", trust: "webhook", tainted: true },
] as const;
export type Column = (typeof columns)[number];

/** Calls of one tool with different decisions; all other tools use the first example of their descriptor. */
const variants: Readonly<Record<string, readonly { about: string; input: Record<string, unknown> }[]>> = {
  cron: [
    { about: "list", input: { action: "list" } },
    { about: "add and others", input: { action: "add", schedule: "at +20m", prompt: "tea" } },
  ],
  exec: [
    { about: "a command", input: { command: "make test" } },
    { about: "`rm -rf build`", input: { command: "rm -rf build" } },
  ],
  message: [
    { about: "to the turn's own conversation", input: { text: "done" } },
    { about: "to others", input: { to: "telegram:main:42", text: "done" } },
  ],
  process: [
    { about: "list, status, poll, log", input: { action: "list" } },
    { about: "input, signal", input: { action: "signal", id: "p1" } },
  ],
  speak: [
    { about: "to the turn's own conversation", input: { text: "done" } },
    { about: "to others", input: { to: "telegram:main:42", text: "done" } },
  ],
  web_fetch: [{ about: "an address that no owner gave", input: { url: "https://example.org/news" } }],
  write: [
    { about: "a file", input: { path: "notes/a.md", content: "x" } },
    { about: "`MEMORY.md`, `SOUL.md`, `memory/`, `skills/` …", input: { path: "MEMORY.md", content: "x" } },
    { about: "`package.json`, `.git/`, `Makefile` …", input: { path: "package.json", content: "{}" } },
  ],
};

/** Every tool of the catalogs and one tool of an MCP server. Commands appear twice: isolated and not isolated. */
export function sampleCalls(): SampleCall[] {
  const descriptors = toolParts().flatMap(({ tools }) => tools.map(({ descriptor }) => descriptor));
  // A call through `tool_call` is authorized as the call that it contains.
  const own = descriptors.filter(({ name }) => name !== "tool_call");
  const calls = own.toSorted((a, b) => (a.name < b.name ? -1 : 1)).flatMap(callsOf);
  const mcp: PermissionTool = { name: "mcp__server__tool", readOnly: false };
  return [...calls, { label: "`mcp__<server>__<tool>`", tool: mcp, input: {} }];
}

function callsOf({ name, readOnly, aliases, risk, effects, examples }: ToolDescriptor): SampleCall[] {
  const tool: PermissionTool = { name, readOnly, aliases, risk, effects, contained: true };
  const label = startsSubagents(tool) ? "start a sub-agent" : `\`${name}\``;
  const samples = variants[name] ?? [{ about: "", input: examples?.[0] ?? {} }];
  return samples.flatMap(({ about, input }) => {
    const text = about === "" ? label : `${label}: ${about}`;
    if (name !== "exec" && !(name === "process" && input["action"] === "signal")) return [{ label: text, tool, input }];
    return [
      { label: `${text}, isolated`, tool, input },
      { label: `${text}, not isolated`, tool: { ...tool, contained: false }, input },
    ];
  });
}

/** The outcome of a call if a person can be reached and no "always" rule exists. */
export async function outcome(
  { tool, input }: SampleCall,
  { trust, tainted }: Pick<Column, "trust" | "tainted">,
  { permissions, tools }: Pick<ParleySettings, "permissions" | "tools">,
): Promise<"runs" | "approval" | "denied"> {
  const principal = principalOf(trust);
  const { decision } = decidePermission(await parseCall(tool, input), {
    mode: permissions.mode,
    allowBypass: permissions.allow_bypass,
    disabled: tools.disabled,
    rules: rulesFor(principal, permissions, {}, trust === "webhook" ? { webhook: [] } : {}),
    principal,
    contained: permissions.contained,
    tainted: permissions.taint && tainted,
    canAsk: true,
  });
  return ({ allow: "runs", ask: "approval", deny: "denied" } as const)[decision];
}

/** The settings by name: first without a preset, then with each preset. */
export function settingsByName(): Map<string, ParleySettings> {
  const named = presetNames.map((name) => [`preset \`${name}\``, parseSettings(`preset = "${name}"`, name)] as const);
  return new Map([["default settings", parseSettings("", "defaults")], ...named]);
}

/** The tables in Markdown; settings with the same decisions share a table. */
async function permissionTables(): Promise<string> {
  const titles = new Map<string, string[]>();
  for (const [name, settings] of settingsByName()) {
    const table = await tableOf(settings);
    titles.set(table, [...(titles.get(table) ?? []), name]);
  }
  return [...titles].map(([table, names]) => `### ${capital(names.join(", "))}\n\n${table}`).join("\n\n");
}

async function tableOf(settings: ParleySettings): Promise<string> {
  const rows = await Promise.all(
    sampleCalls().map(async (call) => {
      const cells = await Promise.all(columns.map((column) => outcome(call, column, settings)));
      return `| ${[call.label, ...cells].join(" | ")} |`;
    }),
  );
  const head = ["call", ...columns.map(({ title }) => title)];
  return [`| ${head.join(" | ")} |`, `| ${head.map(() => "---").join(" | ")} |`, ...rows].join("\n");
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** The page with the current tables. Throws if a marker is missing. */
export async function withTables(page: string): Promise<string> {
  const begin = page.indexOf(tableMarkers.begin);
  const end = page.indexOf(tableMarkers.end);
  if (begin < 0 || end < begin)
    throw new Error(
      `docs/permissions.md: a marker is missing; restore these lines: ${tableMarkers.begin} and ${tableMarkers.end}`,
    );
  return `${page.slice(0, begin)}${tableMarkers.begin}\n\n${await permissionTables()}\n\n${page.slice(end)}`;
}
