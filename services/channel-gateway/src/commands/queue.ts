// What waits behind the running turn, and how messages queue.
import { queueModes, store, type InputOf, type Queued, type QueueMode } from "@parley/contracts";
import { oneLine } from "../words.ts";
import { currentSession, onlyOwners, Refusal, UsageError, type Command, type Invocation } from "./command.ts";

const listed = 50;

function line(row: Queued, index: number): string {
  const who = row.from.origin === "user" ? (row.from.contact.name ?? row.from.contact.id) : row.from.origin;
  return `${index + 1}. [${row.mode}] ${who}: ${oneLine(row.text, 120)}`;
}

async function list(invocation: Invocation): Promise<string> {
  const session = await invocation.deps.sessions.find(invocation.speaker.route);
  if (session === null) return "Nothing waits.";
  const { rows, more } = await waiting(invocation, session.sessionId);
  const mode = session.overrides.queueMode ?? invocation.deps.settings.queue.mode;
  const state = `While the agent is busy, messages are handled in the mode "${mode}".`;
  if (rows.length === 0) return `Nothing waits. ${state}`;
  return `${rows.map(line).join("\n")}${more ? "\n…" : ""}\n${state}`;
}

function waiting({ deps }: Invocation, sessionId: string) {
  return deps.bus.request(store.inboxList, { sessionId, limit: listed });
}

/** The row that is meant by its place in the list or its id; people who are not owners may mean their own alone. */
async function rowOf(invocation: Invocation, named: string | undefined): Promise<Queued> {
  if (named === undefined) throw new UsageError("Say which one: its number in /queue, or its id.");
  const { sessionId } = await currentSession(invocation);
  const { rows } = await waiting(invocation, sessionId);
  const row = /^\d{1,3}$/.test(named) ? rows[Number(named) - 1] : rows.find(({ inboxId }) => inboxId === named);
  if (row === undefined) throw new Refusal(`Nothing that waits is "${named}". /queue shows what does.`);
  const { contact, channel, account } = invocation.speaker;
  const own = row.from.contact.id === contact.id && row.from.channel === channel && row.from.account === account;
  if (!own) onlyOwners(invocation.speaker, "What somebody else has said");
  return row;
}

async function change(
  invocation: Invocation,
  row: Queued,
  to: InputOf<typeof store.inboxEdit>["change"],
): Promise<void> {
  const { changed } = await invocation.deps.bus.request(store.inboxEdit, { inboxId: row.inboxId, change: to });
  invocation.deps.look();
  if (!changed) throw new Refusal("It does not wait any more: the agent has begun with it.");
}

async function setMode(invocation: Invocation, named: string | undefined): Promise<string> {
  const { deps, speaker } = invocation;
  const choices = `${queueModes.join(", ")} or default`;
  if (named === undefined) throw new UsageError(`Say which: ${choices}.`);
  const mode = queueModes.find((each) => each === named.toLowerCase());
  if (mode === undefined && named.toLowerCase() !== "default") {
    throw new UsageError(`There is no mode "${named}": ${choices}.`);
  }
  const { sessionId } = await deps.acts.ensure(speaker.route, speaker.ref);
  await deps.acts.override(sessionId, { queueMode: mode ?? null });
  return explained[mode ?? deps.settings.queue.mode];
}

const explained: Record<QueueMode, string> = {
  steer: "A message that comes in while I am busy joins what I am doing.",
  queue: "A message that comes in while I am busy is answered afterwards.",
  coalesce: "Messages are waited for a moment, and what you say in it is answered together.",
  interrupt: "A message that comes in while I am busy stops what I am doing.",
  reject: "A message that comes in while I am busy is refused.",
};

/** Reached only without a text: with one the message goes to the agent. */
function saying(name: string, summary: string): Command {
  return {
    name,
    usage: `${name} <text>`,
    summary,
    keepsWindow: true,
    run() {
      throw new UsageError("Say what.");
    },
  };
}

export const queueCommands: readonly Command[] = [
  {
    name: "/queue",
    usage: "/queue [list | cancel <n|id> | edit <n|id> <text> | mode <mode>]",
    summary: "what waits behind the running turn; take it back, change it, or change how messages queue",
    keepsWindow: true,
    async run(invocation) {
      const [what = "list", named] = invocation.words;
      switch (what.toLowerCase()) {
        case "list":
          return list(invocation);
        case "cancel": {
          const row = await rowOf(invocation, named);
          await change(invocation, row, { do: "cancel" });
          return `Taken back: ${oneLine(row.text, 120)}`;
        }
        case "edit": {
          const text = invocation.rest.replace(/^\S+\s+\S+\s*/, "");
          const row = await rowOf(invocation, named);
          if (text === "") throw new UsageError("Say what it shall be.");
          await change(invocation, row, { do: "text", text });
          return `It says now: ${oneLine(text, 120)}`;
        }
        case "mode":
          return setMode(invocation, named);
        default:
          throw new UsageError(`/queue knows no "${what}".`);
      }
    },
  },
  saying("/steer", "say something that joins the running turn"),
  saying("/later", "say something that is answered after the running turn"),
  saying("/now", "stop the running turn and say this instead"),
];
