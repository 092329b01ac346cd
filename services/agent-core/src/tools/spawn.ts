// Starting a sub-agent: one mechanism that goes by the name its preset gives it, and understands the arguments of the others.
import { newId, store, type ParleySettings, type ProfileSettings } from "@parley/contracts";
import { z } from "zod";
import { profilesOf } from "../turn/policy.ts";
import { localTool, type LocalContext, type LocalOutcome, type LocalTool } from "./local-tool.ts";

const names = ["sessions_spawn", "delegate", "spawn", "Agent"] as const;

const Input = z.object({
  prompt: z.string().optional().describe("The whole task: the sub-agent sees nothing else."),
  task: z.string().optional().describe("Another name for `prompt`."),
  profile: z.string().optional().describe("Which kind of sub-agent; see the description."),
  agent: z.string().optional().describe("Another name for `profile`."),
  subagent_type: z.string().optional().describe("Another name for `profile`."),
  description: z.string().optional().describe("Three to five words on what it is for."),
  label: z.string().optional().describe("Another name for `description`."),
  mode: z
    .enum(["wait", "background"])
    .optional()
    .describe("wait: the report is the call's result. background: it comes as a message."),
  run_in_background: z.boolean().optional().describe("true: another way to say mode background."),
  resume: z.string().optional().describe("Id of a sub-agent of yours that shall go on with what it knows."),
});

/** The tool under its name in this deployment; its description lists the profiles there are. */
export function spawnTool(settings: ParleySettings): LocalTool {
  const { subagents } = settings;
  const profiles = Object.entries(profilesOf(settings))
    .map(([name, profile]) => `${name}: ${profile.description ?? describe(profile)}`)
    .join("; ");
  return localTool({
    name: subagents.tool_name,
    aliases: names.filter((name) => name !== subagents.tool_name),
    summary: "Give a task to a sub-agent.",
    description: `Give a task to a sub-agent, which works on its own and reports. Profiles: ${profiles}. Without one it is ${subagents.profile}. mode wait (the report is this call's result) or background (you go on; the report comes as a message); without it: ${subagents.mode}.`,
    input: Input,
    examples: [
      {
        prompt: "Read notes/*.md and list every open question with its file.",
        profile: "reader",
        description: "Open questions",
      },
      { prompt: "Watch the build until it ends and say how.", mode: "background" },
    ],
    class: "idempotent",
    readOnly: false,
    risk: "low",
    effects: ["reads_untrusted"],
    run: (input, context) => spawn(input, context),
  });
}

async function spawn(input: z.infer<typeof Input>, context: LocalContext): Promise<LocalOutcome> {
  const { settings, policy, turn, step } = context;
  const failed = (content: string): LocalOutcome => ({ status: "failed", content });
  const prompt = input.prompt ?? input.task ?? "";
  if (prompt.trim() === "") return failed("The task is missing: say in `prompt` what the sub-agent shall do.");
  const profile = input.profile ?? input.agent ?? input.subagent_type ?? settings.subagents.profile;
  const profiles = profilesOf(settings);
  if (!Object.hasOwn(profiles, profile)) {
    return failed(`There is no profile "${profile}". There are: ${Object.keys(profiles).join(", ")}.`);
  }
  if (policy.depth >= settings.subagents.max_depth) {
    return failed(
      `Not started: agents may be ${settings.subagents.max_depth} deep here, and you are that deep. Do it yourself, or report what is left.`,
    );
  }
  const mode =
    input.mode ??
    (input.run_in_background === undefined ? settings.subagents.mode : input.run_in_background ? "background" : "wait");
  const started = await context.bus.request(
    store.turnSpawn,
    {
      opId: newId(),
      epoch: context.epoch,
      turnId: turn.turnId,
      n: step.n,
      mode,
      profile,
      title: (input.description ?? input.label ?? prompt).slice(0, 80),
      parts: [{ type: "text", text: prompt }],
      maxChildren: settings.subagents.max_children,
      tainted: context.tainted,
      resume: input.resume ?? null,
      announce: policy.queueMode === "steer" ? "steer" : "queue",
    },
    { timeoutMs: context.storeTimeoutMs },
  );
  if (started.status === "refused") return failed(`Not started: ${started.reason}.`);
  context.say({
    type: "subagent.started",
    turnId: turn.turnId,
    callId: step.callId,
    sessionId: started.sessionId,
    profile,
    mode,
  });
  const { result } = started.step;
  return result === null ? { status: "waiting" } : { status: "settled", result };
}

function describe(profile: ProfileSettings): string {
  return profile.tools === undefined ? "reads only" : `has ${profile.tools.join(", ") || "no tools"}`;
}
