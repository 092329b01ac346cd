// What there is to know: the commands, how the conversation stands, who one is.
import { store } from "@parley/contracts";
import { version } from "../version.ts";
import { costText, some, tokensText } from "../words.ts";
import { accessRules, maySee } from "./access.ts";
import { UsageError, type Command, type Invocation } from "./command.ts";

/** `commands`: all there are, this group included. */
export function aboutCommands(commands: () => readonly Command[]): readonly Command[] {
  return [
    {
      name: "/help",
      usage: "/help [command]",
      summary: "this list, or how one of them is typed",
      run: ({ speaker, words }) => help(commands(), speaker, words[0]),
    },
    { name: "/status", usage: "/status", summary: "how this conversation stands", run: status },
    {
      name: "/whoami",
      usage: "/whoami",
      summary: "who you are to the agent",
      run: ({ speaker, deps }) =>
        [
          `You are ${speaker.contact.name ?? speaker.contact.id} (${speaker.contact.id}), role ${speaker.role}.`,
          `You write over ${speaker.channel}, account ${speaker.account}, conversation ${speaker.conversation}.`,
          `It leads to the session ${speaker.route} (policy ${deps.settings.session.policy}), unless it was moved to another.`,
        ].join("\n"),
    },
  ];
}

function help(commands: readonly Command[], speaker: Invocation["speaker"], about: string | undefined): string {
  if (about !== undefined) {
    const name = about.startsWith("/") ? about.toLowerCase() : `/${about.toLowerCase()}`;
    const command = commands.find((each) => each.name === name);
    if (command === undefined) throw new UsageError(`There is no command ${name}.`);
    return `${command.usage}\n${command.summary}${isOwners(name) ? " (owner only)" : ""}`;
  }
  const lines = commands
    .filter(({ name }) => maySee(name, speaker))
    .map(({ usage, summary }) => `${usage}\n    ${summary}`);
  return `Commands:\n${lines.join("\n")}\nEverything else is said to the agent; a text that begins with a slash needs a space before it.`;
}

/** No form of the command is for anybody else. */
function isOwners(name: string): boolean {
  return accessRules.every((row) => row.command !== name || (row.direct === "owner" && row.group === "owner"));
}

async function status({ deps, speaker }: Invocation): Promise<string> {
  const owner = speaker.role === "owner";
  const [session, model, { approvals }] = await Promise.all([
    deps.sessions.find(speaker.route),
    deps.acts.model(),
    owner ? deps.bus.request(store.approvalList, { pending: true, limit: 20 }) : { approvals: [] },
  ]);
  const own = session?.overrides.model;
  const lines = [
    `Parley ${version}`,
    model === null ? "Model: no agent-core answers right now" : `Model: ${own ?? `${model.model} (${model.provider})`}`,
  ];
  if (session === null) return [...lines, "Conversation: nothing was said yet"].join("\n");
  const state = session.runningTurnId === null ? "idle" : session.parked ? "waiting for somebody" : "working";
  const mode = session.overrides.permissionMode ?? deps.settings.permissions.mode;
  lines.push(
    `Conversation ${session.key}${session.title === null ? "" : ` "${session.title}"`}: ${state}, ${session.queued} waiting, ${some(session.messageCount, "message")}`,
    `Permissions: ${mode}; while busy: ${session.overrides.queueMode ?? deps.settings.queue.mode}`,
    `${tokensText(session.usage)}; ${costText(session.cost)}`,
  );
  if (approvals.length > 0)
    lines.push(`${some(approvals.length, "tool call waits", "tool calls wait")} for a yes: /approvals`);
  return lines.join("\n");
}
