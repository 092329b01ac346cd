// /model, /effort and /mode: settings that apply to one session only.
import { efforts, permissionModes } from "@parley/contracts";
import type { Command, Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";

async function sessionId({ deps, speaker }: Invocation): Promise<string> {
  return (await deps.acts.ensure(speaker.route, speaker.ref)).sessionId;
}

/** Returns the chosen value, `default`, or undefined without arguments. Throws UsageError for any other argument. */
function choice<T extends string>(words: readonly string[], choices: readonly T[]): T | "default" | undefined {
  const [word, ...others] = words;
  if (word === undefined) return undefined;
  const found = [...choices, "default" as const].find((each) => each === word.toLowerCase());
  if (found === undefined || others.length > 0) {
    throw new UsageError(`"${words.join(" ")}" is not one of ${[...new Set([...choices, "default"])].join(", ")}.`);
  }
  return found;
}

export const modelCommands: readonly Command[] = [
  {
    name: "/model",
    usage: "/model [name|default]",
    summary: "show this session's model, or change it from the next model call on",
    async run(invocation) {
      const { deps, speaker, words } = invocation;
      const [name, ...others] = words;
      if (others.length > 0) throw new UsageError("A model name cannot contain spaces.");
      if (name === undefined) {
        const [session, model] = await Promise.all([deps.sessions.find(speaker.route), deps.acts.model()]);
        const own = session?.overrides.model;
        if (own !== undefined) return `This session's model is ${own}; /model default resets it.`;
        if (model === null) return "No agent-core is responding; try again in a moment.";
        return `The model is ${model.model} (${model.provider}).${model.note === null ? "" : ` ${model.note}`}`;
      }
      const model = name.toLowerCase() === "default" ? null : name;
      await deps.acts.override(await sessionId(invocation), { model });
      return model === null
        ? "This session uses the configured model again."
        : `This session uses ${model} from now on.`;
    },
  },
  {
    name: "/effort",
    usage: `/effort [${efforts.join("|")}|default]`,
    summary: "show or set the reasoning effort in this session",
    async run(invocation) {
      const { deps, speaker, words } = invocation;
      const effort = choice(words, efforts);
      if (effort === undefined) {
        const session = await deps.sessions.find(speaker.route);
        const now = session?.overrides.effort ?? deps.settings.agent.effort;
        return now === undefined ? "The effort is not set; the model decides." : `The effort is ${now}.`;
      }
      await deps.acts.override(await sessionId(invocation), { effort: effort === "default" ? null : effort });
      return effort === "default"
        ? "The effort is reset to the configured value."
        : `The effort is ${effort} from now on.`;
    },
  },
  {
    name: "/mode",
    usage: `/mode [${permissionModes.join("|")}|default]`.replace("|default]", "]"),
    summary: "show or set what the agent may do without approval in this session",
    async run(invocation) {
      const { deps, speaker, words } = invocation;
      const permissionMode = choice(words, permissionModes);
      if (permissionMode === undefined) {
        const session = await deps.sessions.find(speaker.route);
        return `The permission mode is ${session?.overrides.permissionMode ?? deps.settings.permissions.mode}.`;
      }
      await deps.acts.override(await sessionId(invocation), { permissionMode });
      return `The permission mode is ${permissionMode} from now on.`;
    },
  },
];
