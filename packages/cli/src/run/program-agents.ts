// Sub-agents that a program defines with the option `agents`. Pure.

import { efforts, ownToolName, type ProgramAgent, ProgramAgentsSchema } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { z } from "zod";

import { firstIssue } from "../io/io.ts";

/** Other fields would change what the sub-agent does, so they are refused. */
const Definition = z.strictObject({
  description: z.string(),
  prompt: z.string(),
  tools: z.array(z.string()).nullish(),
  disallowedTools: z.array(z.string()).nullish(),
  model: z.string().nullish(),
  effort: z.enum(efforts).nullish(),
  maxTurns: z.number().int().positive().nullish(),
  /** Parley's sub-agents never have them. */
  omitClaudeMd: z.boolean().nullish(),
});
const Definitions = z.record(z.string(), Definition);

/** The sub-agents by name. Throws Error for definitions that cannot be honoured. */
export function readAgents(value: unknown): Record<string, ProgramAgent> {
  const parsed = Definitions.safeParse(value ?? {});
  if (!parsed.success) throw new Error(`agents: ${firstIssue(parsed.error)}`);
  const agents = Object.entries(parsed.data).map(([name, definition]) => [name, agentOf(definition)] as const);
  const checked = ProgramAgentsSchema.safeParse(Object.fromEntries(agents));
  if (!checked.success) throw new Error(`agents: ${firstIssue(checked.error)}`);
  return checked.data;
}

function agentOf({
  description,
  prompt,
  tools,
  disallowedTools,
  model,
  effort,
  maxTurns,
}: z.output<typeof Definition>) {
  return omitUndefined({
    description,
    prompt,
    tools: tools?.map(toolName),
    disallowedTools: disallowedTools?.map(toolName),
    model: model === "inherit" ? undefined : (model ?? undefined),
    effort: effort ?? undefined,
    maxModelCalls: maxTurns ?? undefined,
  });
}

/** `mcp__server` means all tools of the server. Throws Error for a rule with a pattern. */
function toolName(text: string): string {
  if (/[()]/.test(text)) throw new Error(`agents: "${text}" is not the name of a tool`);
  return /^mcp__[^_]+(?:_[^_]+)*$/.test(text) ? `${text}__*` : ownToolName(text);
}
