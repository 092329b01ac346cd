// What holds for this session alone: the model, how hard it thinks, what it may do.
import { efforts, permissionModes } from "@parley/contracts";
import { UsageError, type Command, type Invocation } from "./command.ts";

async function sessionId({ deps, speaker }: Invocation): Promise<string> {
  return (await deps.acts.ensure(speaker.route, speaker.ref)).sessionId;
}

/** One of some words, `default`, or undefined where nothing was said. Throws UsageError. */
function choice<T extends string>(words: readonly string[], choices: readonly T[]): T | "default" | undefined {
  const [word, ...others] = words;
  if (word === undefined) return undefined;
  const found = [...choices, "default" as const].find((each) => each === word.toLowerCase());
  if (found === undefined || others.length > 0) {
    throw new UsageError(`"${words.join(" ")}" is none of ${[...new Set([...choices, "default"])].join(", ")}.`);
  }
  return found;
}

export const modelCommands: readonly Command[] = [
  {
    name: "/model",
    usage: "/model [name|default]",
    summary: "which model answers in this session, or another one from the next call on",
    async run(invocation) {
      const { deps, speaker, words } = invocation;
      const [name, ...others] = words;
      if (others.length > 0) throw new UsageError("A model's name has no spaces.");
      if (name === undefined) {
        const [session, model] = await Promise.all([deps.sessions.find(speaker.route), deps.acts.model()]);
        const own = session?.overrides.model;
        if (own !== undefined) return `This session's model is ${own}; /model default takes that back.`;
        if (model === null) return "No agent-core answers right now; try again.";
        return `${model.model} (${model.provider}) answers.${model.note === null ? "" : ` ${model.note}`}`;
      }
      const model = name.toLowerCase() === "default" ? null : name;
      await deps.acts.override(await sessionId(invocation), { model });
      return model === null ? "The agent's own model answers again." : `${model} answers in this session from now on.`;
    },
  },
  {
    name: "/effort",
    usage: `/effort [${efforts.join("|")}|default]`,
    summary: "how hard the model thinks in this session",
    async run(invocation) {
      const { deps, speaker, words } = invocation;
      const effort = choice(words, efforts);
      if (effort === undefined) {
        const session = await deps.sessions.find(speaker.route);
        const now = session?.overrides.effort ?? deps.settings.agent.effort;
        return now === undefined ? "The effort is left to the model." : `The effort is ${now}.`;
      }
      await deps.acts.override(await sessionId(invocation), { effort: effort === "default" ? null : effort });
      return effort === "default" ? "The effort is as configured again." : `The effort is ${effort} from now on.`;
    },
  },
  {
    name: "/mode",
    usage: `/mode [${permissionModes.join("|")}|default]`.replace("|default]", "]"),
    summary: "what the agent may do on its own in this session",
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
