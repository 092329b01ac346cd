// /help, /status and /whoami: read-only information about commands, the conversation and the sender.
import { store, type SlashCommand } from "@parley/contracts";
import { version } from "../version.ts";
import { costText, pluralize, tokensText } from "./format.ts";
import { accessRules, maySee } from "./access.ts";
import type { Command, Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";

/** `commands`: all registered commands, including this group. */
export function aboutCommands(commands: () => readonly SlashCommand[]): readonly Command[] {
  return [
    {
      name: "/help",
      usage: "/help [command]",
      summary: "list the commands, or show the usage of one",
      run: ({ speaker, words }) => help(commands(), speaker, words[0]),
    },
    { name: "/status", usage: "/status", summary: "show the state of this conversation", run: status },
    {
      name: "/whoami",
      usage: "/whoami",
      summary: "show your identity, role and session",
      run: ({ speaker, deps }) =>
        [
          `You are ${speaker.contact.name ?? speaker.contact.id} (${speaker.contact.id}), role ${speaker.role}.`,
          `Channel ${speaker.channel}, account ${speaker.account}, conversation ${speaker.conversation}.`,
          `Session key: ${speaker.route} (policy ${deps.settings.session.policy}), unless you switched to another session.`,
        ].join("\n"),
    },
  ];
}

function help(commands: readonly SlashCommand[], speaker: Invocation["speaker"], about: string | undefined): string {
  if (about !== undefined) {
    const name = about.startsWith("/") ? about.toLowerCase() : `/${about.toLowerCase()}`;
    const command = commands.find((each) => each.name === name);
    if (command === undefined) throw new UsageError(`Unknown command ${name}.`);
    return `${command.usage}\n${command.summary}${isOwners(name) ? " (owner only)" : ""}`;
  }
  const lines = commands
    .filter(({ name }) => maySee(name, speaker))
    .map(({ usage, summary }) => `${usage}\n    ${summary}`);
  return `Commands:\n${lines.join("\n")}\nAll other text goes to the agent. To send text that begins with a slash, put a space before it.`;
}

/** Whether every form of the command requires the owner role. */
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
    model === null
      ? "Model: unknown, no agent-core is responding"
      : `Model: ${own ?? `${model.model} (${model.provider})`}`,
  ];
  if (session === null) return [...lines, "Conversation: no messages yet"].join("\n");
  const state = session.runningTurnId === null ? "idle" : session.parked ? "waiting for a person" : "working";
  const mode = session.overrides.permissionMode ?? deps.settings.permissions.mode;
  lines.push(
    `Conversation ${session.key}${session.title === null ? "" : ` "${session.title}"`}: ${state}, ${session.queued} queued, ${pluralize(session.messageCount, "message")}`,
    `Permissions: ${mode}; while busy: ${session.overrides.queueMode ?? deps.settings.queue.mode}`,
    `${tokensText(session.usage)}; ${costText(session.cost)}`,
  );
  if (approvals.length > 0)
    lines.push(`${pluralize(approvals.length, "tool call waits", "tool calls wait")} for approval: /approvals`);
  return lines.join("\n");
}
