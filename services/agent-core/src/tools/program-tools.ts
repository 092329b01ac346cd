// Tools that the program which drives a session runs itself: a call is offered to it in the store, and its turn waits without a slot.
import {
  store,
  type ParleySettings,
  type ProgramTool,
  type SessionOverrides,
  type ToolDescriptor,
} from "@parley/contracts";
import { z } from "zod";
import type { LocalContext, LocalOutcome, LocalTool } from "./local-tool.ts";
import { spawnTool } from "./spawn.ts";

/** How long the program has to take a call. It renews its hold of a running call more often. */
const takeMs = 20_000;

const origin = "Tool of the program that drives this session. ";

/** Whether a description in a prompt belongs to a tool of a program. */
export function isProgramTool(description: string): boolean {
  return description.startsWith(origin);
}

/**
 * The local tools of a session to which a program adds tools and sub-agents. `taken`: names of the deployment's own tools, which keep
 * them.
 */
export function withProgram(
  local: readonly LocalTool[],
  { programTools = [], programAgents }: Pick<SessionOverrides, "programTools" | "programAgents">,
  taken: ReadonlySet<string>,
  settings: ParleySettings,
): LocalTool[] {
  const spawn = settings.subagents.tool_name;
  const replaced =
    programAgents === undefined
      ? local
      : local.map((tool) => (tool.descriptor.name === spawn ? spawnTool(settings, programAgents) : tool));
  return [...replaced, ...programTools.filter(({ name }) => !taken.has(name)).map(programTool)];
}

function programTool(tool: ProgramTool): LocalTool {
  const descriptor = descriptorOf(tool);
  return {
    descriptor,
    limits: [],
    // The program validates the arguments.
    args: z.unknown(),
    run: (input, context) => offer(input, context),
    resume: (input, context) => offer(input, context),
  };
}

/**
 * The program has the trust of the messages that it sends, so its hints about its own tools count. Without hints a tool may change
 * anything and send data anywhere.
 */
function descriptorOf({ name, description, inputSchema, ...hints }: ProgramTool): ToolDescriptor {
  const { readOnly = false, destructive = false, openWorld = false } = hints;
  const reads = readOnly && !destructive;
  return {
    name,
    aliases: [],
    summary: `${name} (tool of the program)`,
    description: `${origin}${description}`,
    inputSchema,
    class: "once",
    readOnly: reads,
    risk: reads ? "low" : destructive ? "critical" : "high",
    effects: [
      ...(openWorld ? (["reads_untrusted"] as const) : []),
      ...(reads && !openWorld ? [] : (["sends_out"] as const)),
      ...(reads ? [] : (["executes"] as const)),
    ],
    resource: { kind: reads ? "none" : "path" },
    timeoutMs: takeMs,
  };
}

async function offer(input: string, { leaderStore, turn, step, name }: LocalContext): Promise<LocalOutcome> {
  const { turnId } = turn;
  const request = { turnId, n: step.n, input, holdMs: takeMs };
  const { step: now, heldUntil, taken, isOver } = await leaderStore.request(store.programCallOpen, request);
  if (now.result !== null) return { status: "settled", result: now.result };
  if (!isOver) return { status: "waiting", until: heldUntil };
  return {
    status: "failed",
    content: taken
      ? `Outcome unknown: the program that runs ${name} was lost during the call. Check the effects of the call before you repeat it.`
      : `Not run: the program that runs ${name} is not connected.`,
  };
}
