// Starts sub-agents. The settings choose the tool's name; the argument names of other agent designs are accepted.
import { store, type ParleySettings, type ProfileSettings, type ProgramAgent } from "@parley/contracts";
import { z } from "zod";
import { profilesOf } from "../policy/turn-policy.ts";
import { localTool, type LocalContext, type LocalOutcome, type LocalTool } from "./local-tool.ts";

const names = ["sessions_spawn", "delegate", "spawn", "Agent"] as const;

const Input = z.object({
  prompt: z.string().optional().describe("The complete task: the sub-agent sees nothing else."),
  task: z.string().optional().describe("Alias of `prompt`.").meta({ modelSchema: "hidden" }),
  profile: z
    .string()
    .optional()
    .describe("Profile of the sub-agent; see the description.")
    .meta({ modelSchema: "name_only" }),
  agent: z.string().optional().describe("Alias of `profile`.").meta({ modelSchema: "hidden" }),
  subagent_type: z.string().optional().describe("Alias of `profile`.").meta({ modelSchema: "hidden" }),
  description: z.string().optional().describe("The task in three to five words."),
  label: z.string().optional().describe("Alias of `description`.").meta({ modelSchema: "hidden" }),
  mode: z.enum(["wait", "background"]).optional().describe("background: the report arrives later as a message."),
  run_in_background: z.boolean().optional().describe("true: same as mode background.").meta({ modelSchema: "hidden" }),
  resume: z.string().optional().describe("Id of an earlier sub-agent that continues."),
});

const ofProgram = " Profiles of the program that drives this session: ";

/** What a description in a prompt says about the sub-agents of a program; empty: nothing. */
export function programAgentsIn(description: string): string {
  const at = description.indexOf(ofProgram);
  return at === -1 ? "" : description.slice(at);
}

/**
 * The tool with its configured name; its description lists the available profiles. `agents`: those that a program adds; of two with one
 * name, the program's counts.
 */
export function spawnTool(settings: ParleySettings, agents: Readonly<Record<string, ProgramAgent>> = {}): LocalTool {
  const { subagents } = settings;
  const profiles = Object.entries(profilesOf(settings))
    .filter(([name]) => !Object.hasOwn(agents, name))
    .map(([name, profile]) => `${name}: ${profile.description ?? describe(profile)}`)
    .join("; ");
  const added = Object.entries(agents).map(([name, { description }]) => `${name}: ${description}`);
  return localTool({
    name: subagents.tool_name,
    aliases: names.filter((name) => name !== subagents.tool_name),
    summary: "Give a task to a sub-agent.",
    description: `Give a task to a sub-agent, which works independently and reports its result. Profiles: ${profiles}. Default profile: ${subagents.profile}; default mode: ${subagents.mode}.${added.length === 0 ? "" : `${ofProgram}${added.join("; ")}`}`,
    input: Input,
    examples: [
      {
        prompt: "Read notes/*.md and list every open question with its file.",
        profile: "reader",
        description: "Open questions",
      },
      { prompt: "Watch the build until it ends and report the result.", mode: "background" },
    ],
    class: "idempotent",
    readOnly: false,
    risk: "low",
    effects: ["reads_untrusted"],
    run: (input, context) => spawn(input, context, agents),
  });
}

async function spawn(
  input: z.infer<typeof Input>,
  context: LocalContext,
  agents: Readonly<Record<string, ProgramAgent>>,
): Promise<LocalOutcome> {
  const { settings, policy, turn, step } = context;
  const failed = (content: string): LocalOutcome => ({ status: "failed", content });
  const prompt = input.prompt ?? input.task ?? "";
  if (prompt.trim() === "")
    return failed("Not started: the task is missing. Describe in `prompt` what the sub-agent should do.");
  const profile = input.profile ?? input.agent ?? input.subagent_type ?? settings.subagents.profile;
  const profiles = { ...profilesOf(settings), ...agents };
  if (!Object.hasOwn(profiles, profile)) {
    return failed(`Not started: there is no profile "${profile}". Available: ${Object.keys(profiles).join(", ")}.`);
  }
  if (policy.depth >= settings.subagents.max_depth) {
    return failed(
      `Not started: you are at the maximum nesting depth of sub-agents (${settings.subagents.max_depth}). Do the task yourself, or report what remains to be done.`,
    );
  }
  const mode =
    input.mode ??
    (input.run_in_background === undefined ? settings.subagents.mode : input.run_in_background ? "background" : "wait");
  const description =
    [input.description, input.label].find((text) => text !== undefined && text.trim() !== "") ?? prompt;
  const started = await context.leaderStore.request(store.turnSpawn, {
    turnId: turn.turnId,
    n: step.n,
    mode,
    profile,
    ...(Object.hasOwn(agents, profile) ? { ofProgram: true } : {}),
    title: description.slice(0, 80),
    parts: [{ type: "text", text: prompt }],
    maxChildren: settings.subagents.max_children,
    tainted: context.tainted,
    resume: input.resume ?? null,
    reuse: settings.subagents.reuse,
    announce: policy.queueMode === "steer" ? "steer" : "queue",
  });
  if (started.status === "refused") return failed(`Not started: ${started.reason}.`);
  context.publish({
    type: "subagent.started",
    turnId: turn.turnId,
    callId: step.callId,
    sessionId: started.sessionId,
    profile,
    mode,
    description: description.slice(0, 200),
    ...(started.afterSeq === undefined ? {} : { afterSeq: started.afterSeq }),
  });
  const { result } = started.step;
  return result === null ? { status: "waiting" } : { status: "settled", result };
}

function describe(profile: ProfileSettings): string {
  return profile.tools === undefined ? "read-only tools" : `tools: ${profile.tools.join(", ") || "none"}`;
}
