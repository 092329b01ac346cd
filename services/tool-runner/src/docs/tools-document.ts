// docs/tools.md, from the tools themselves, with the settings' defaults: what the document says is what the model is shown.
import { ParleySettingsSchema } from "@parley/contracts";
import { z } from "zod";
import { execTimes } from "../config.ts";
import { defaultExecLimits } from "../exec/limits.ts";
import { Processes } from "../process/processes.ts";
import type { Tool } from "../tool.ts";
import { builtInTools } from "../tools/tools.ts";
import { systemResolver } from "../web/get.ts";
import { fetchOptions } from "../web/settings.ts";

/** The whole document. */
export function toolsDocument(): string {
  const tools = describedTools().toSorted((a, b) => (a.descriptor.name < b.descriptor.name ? -1 : 1));
  return [
    "# Tools of the tool-runner",
    "Generated from `services/tool-runner/src/tools` by `npm run docs`; a test fails when it is stale. Numbers are those of the default settings.",
    "*Class* says what happens after a crash: `pure` calls are made again, `idempotent` ones with the same key, `once` is never started twice, and the model is told that its outcome is unknown. *Risk* is what permissions go by. A call by another name that is understood is the same call.",
    summaryTable(tools),
    ...tools.map(section),
    "",
  ].join("\n\n");
}

/** Every tool there can be, for its description: they are not run. */
export function describedTools(): Tool[] {
  const { tools: settings } = ParleySettingsSchema.parse({});
  const limits = defaultExecLimits(Number.MAX_SAFE_INTEGER);
  const processes = new Processes("", { maxPerSession: settings.exec.max_background, maxInAll: 0 });
  const notRun = () => Promise.reject(new Error("described only"));
  return builtInTools({
    exec: {
      executor: { isolation: { kind: "container" }, limitedBy: "", start: notRun },
      limits,
      processes,
      times: execTimes(settings.exec),
    },
    desk: { list: notRun, ask: notRun },
    web: { ...fetchOptions(settings.web), resolve: systemResolver },
    search: { name: "brave", key: "", url: "" },
  });
}

function summaryTable(tools: readonly Tool[]): string {
  const rows = tools.map(
    ({ descriptor: { name, summary, class: toolClass, risk } }) =>
      `| [\`${name}\`](#${name}) | ${cell(summary)} | ${toolClass} | ${risk} |`,
  );
  return ["| tool | what it does | class | risk |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function section({ descriptor, limits }: Tool): string {
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
  maximum: z.number().optional(),
  maxLength: z.number().optional(),
  description: z.string().optional(),
});
const InputSchema = z.object({
  properties: z.record(z.string(), Parameter),
  required: z.array(z.string()).default([]),
});

function parameterTable(schema: Record<string, unknown>): string {
  const { properties, required } = InputSchema.parse(schema);
  const rows = Object.entries(properties).map(
    ([name, parameter]) =>
      `| \`${name}\` | ${typeOf(parameter)} | ${required.includes(name) ? "yes" : ""} | ${cell(parameter.description ?? "")} |`,
  );
  return ["| argument | type | needed | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function typeOf(parameter: z.infer<typeof Parameter>): string {
  if (parameter.enum !== undefined) return parameter.enum.map((value) => `\`${value}\``).join(" ");
  const { type = "", minimum, maximum, maxLength } = parameter;
  const largest = maximum ?? Number.MAX_SAFE_INTEGER;
  if (type === "integer" && minimum !== undefined) {
    return largest === Number.MAX_SAFE_INTEGER ? `integer from ${minimum}` : `integer ${minimum} to ${largest}`;
  }
  return maxLength === undefined ? type : `${type}, at most ${maxLength} characters`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
