// /queue, /steer, /later and /now: queued messages, and how a session queues new ones.
import { queueModes, store, type InputOf, type QueuedMessage, type QueueMode } from "@parley/contracts";
import { oneLine } from "./format.ts";
import { currentSession, onlyOwners, CommandError, type Command, type Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";

const listed = 50;

function line(row: QueuedMessage, index: number): string {
  const who = row.from.origin === "user" ? (row.from.contact.name ?? row.from.contact.id) : row.from.origin;
  return `${index + 1}. [${row.mode}] ${who}: ${oneLine(row.text, 120)}`;
}

async function list(invocation: Invocation): Promise<string> {
  const session = await invocation.deps.sessions.find(invocation.speaker.route);
  if (session === null) return "The queue is empty.";
  const { rows, more } = await waiting(invocation, session.sessionId);
  const mode = session.overrides.queueMode ?? invocation.deps.settings.queue.mode;
  const state = `Queue mode while the agent is busy: ${mode}.`;
  if (rows.length === 0) return `The queue is empty. ${state}`;
  return `${rows.map(line).join("\n")}${more ? "\n…" : ""}\n${state}`;
}

function waiting({ deps }: Invocation, sessionId: string) {
  return deps.bus.request(store.inboxList, { sessionId, limit: listed });
}

/** Finds a row by its number in the list or its id. Only owners may select messages of other people. */
async function rowOf(invocation: Invocation, named: string | undefined): Promise<QueuedMessage> {
  if (named === undefined) throw new UsageError("A message is required: its number in /queue, or its id.");
  const { sessionId } = await currentSession(invocation);
  const { rows } = await waiting(invocation, sessionId);
  const row = /^\d{1,3}$/.test(named) ? rows[Number(named) - 1] : rows.find(({ inboxId }) => inboxId === named);
  if (row === undefined) throw new CommandError(`No queued message matches "${named}". /queue lists them.`);
  const { contact, channel, account } = invocation.speaker;
  const own = row.from.contact.id === contact.id && row.from.channel === channel && row.from.account === account;
  if (!own) onlyOwners(invocation.speaker, "Changing messages of other people");
  return row;
}

async function change(
  invocation: Invocation,
  row: QueuedMessage,
  to: InputOf<typeof store.inboxEdit>["change"],
): Promise<void> {
  const { changed } = await invocation.deps.bus.request(store.inboxEdit, { inboxId: row.inboxId, change: to });
  invocation.deps.look();
  if (!changed) throw new CommandError("The message is no longer queued: the agent has started with it.");
}

async function setMode(invocation: Invocation, named: string | undefined): Promise<string> {
  const { deps, speaker } = invocation;
  const choices = `${queueModes.join(", ")} or default`;
  if (named === undefined) throw new UsageError(`A mode is required: ${choices}.`);
  const mode = queueModes.find((each) => each === named.toLowerCase());
  if (mode === undefined && named.toLowerCase() !== "default") {
    throw new UsageError(`Unknown mode "${named}". Use ${choices}.`);
  }
  const { sessionId } = await deps.acts.ensure(speaker.route, speaker.ref);
  await deps.acts.override(sessionId, { queueMode: mode ?? null });
  return explained[mode ?? deps.settings.queue.mode];
}

const explained: Record<QueueMode, string> = {
  steer: "A message that arrives while I am busy joins the running turn.",
  queue: "A message that arrives while I am busy is answered after the running turn.",
  coalesce: "I wait briefly for further messages and answer them together.",
  interrupt: "A message that arrives while I am busy stops the running turn.",
  reject: "A message that arrives while I am busy is refused.",
};

/** Runs only when the text is missing; with a text the message goes to the agent (parse-input.ts). */
function saying(name: string, summary: string): Command {
  return {
    name,
    usage: `${name} <text>`,
    summary,
    keepsWindow: true,
    run() {
      throw new UsageError("A text is required.");
    },
  };
}

export const queueCommands: readonly Command[] = [
  {
    name: "/queue",
    usage: "/queue [list | cancel <n|id> | edit <n|id> <text> | mode <mode>]",
    summary: "list, cancel or edit queued messages, or change how new ones queue",
    keepsWindow: true,
    async run(invocation) {
      const [what = "list", named] = invocation.words;
      switch (what.toLowerCase()) {
        case "list":
          return list(invocation);
        case "cancel": {
          const row = await rowOf(invocation, named);
          await change(invocation, row, { do: "cancel" });
          return `Cancelled: ${oneLine(row.text, 120)}`;
        }
        case "edit": {
          const text = invocation.argumentText.replace(/^\S+\s+\S+\s*/, "");
          const row = await rowOf(invocation, named);
          if (text === "") throw new UsageError("The new text is required.");
          await change(invocation, row, { do: "text", text });
          return `Updated: ${oneLine(text, 120)}`;
        }
        case "mode":
          return setMode(invocation, named);
        default:
          throw new UsageError(`Unknown subcommand: /queue ${what}.`);
      }
    },
  },
  saying("/steer", "send a message that joins the running turn"),
  saying("/later", "send a message that is answered after the running turn"),
  saying("/now", "stop the running turn and send this message instead"),
];
