// /new and /session: start, list, name, resume and fork sessions.
import { store, type SessionSummary } from "@parley/contracts";
import { formatAge, costText, shortId, pluralize, tokensText } from "./format.ts";
import { recap } from "./recap.ts";
import { currentSession, CommandError, type Command, type Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";

const defaultListed = 10;
const maxTitle = 200;
/** How many messages back the recap searches. */
const lookedAt = 100;

function titleIn(text: string): string | undefined {
  if (text === "") return undefined;
  if (text.length > maxTitle) throw new UsageError(`A title may have at most ${maxTitle} characters.`);
  return text;
}

/** The name of a session in an answer. */
function named(session: SessionSummary): string {
  return `${session.title === null ? "without a title" : `"${session.title}"`} (${shortId(session.sessionId)})`;
}

function line(session: SessionSummary, currentId: string | undefined): string {
  const mark = session.sessionId === currentId ? "→" : " ";
  const archived = session.status === "archived" ? ", archived" : "";
  const at = formatAge(session.updatedAt, Date.now());
  return `${mark} ${shortId(session.sessionId)}  ${session.title ?? "(no messages yet)"} · ${pluralize(session.messageCount, "message")} · ${at}${archived}`;
}

/** The previous session is kept and can be resumed. */
async function open({ deps, speaker }: Invocation, title: string | undefined): Promise<string> {
  const { session, previousId } = await deps.acts.open(speaker.route, { title, archive: false }, speaker.ref);
  const back =
    previousId === null ? "" : ` The previous session is kept: /session resume ${shortId(previousId)} returns to it.`;
  return `New session started${session.title === null ? "" : `: "${session.title}"`}.${back}`;
}

async function list(invocation: Invocation, wanted: string | undefined): Promise<string> {
  const { deps, speaker } = invocation;
  const limit = wanted === undefined ? defaultListed : Number(wanted);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) throw new UsageError("The number must be from 1 to 100.");
  const [{ sessions }, current] = await Promise.all([
    deps.bus.request(store.sessionList, { limit }),
    deps.sessions.find(speaker.route),
  ]);
  if (sessions.length === 0) return "There are no sessions yet.";
  return `${sessions.map((session) => line(session, current?.sessionId)).join("\n")}\n/session resume <id> continues one.`;
}

async function resume({ deps, speaker }: Invocation, which: string): Promise<string> {
  if (which === "") throw new UsageError("A session is required: its id or its title.");
  const bound = await deps.acts.resume(speaker.route, which);
  switch (bound.outcome) {
    case "found": {
      const { session } = bound;
      const range = { sessionId: session.sessionId, afterSeq: 0, beforeSeq: Number.MAX_SAFE_INTEGER, limit: lookedAt };
      const { messages } = await deps.bus.request(store.sessionMessages, range);
      const size = `${pluralize(session.messageCount, "message")}, ${formatAge(session.updatedAt, Date.now())}`;
      return [`This conversation continues with session ${named(session)}, ${size}.`, ...recap(messages)].join("\n");
    }
    case "ambiguous":
      throw new CommandError(
        `Several sessions have this title; choose one by its id:\n${bound.sessions.map((each) => line(each, undefined)).join("\n")}`,
      );
    default:
      throw new CommandError(`No session "${which}" found. /session list shows them.`);
  }
}

async function fork(invocation: Invocation, title: string | undefined): Promise<string> {
  const { deps, speaker } = invocation;
  const original = await currentSession(invocation);
  const session = await deps.acts.fork(original.sessionId, { route: speaker.route, title }, speaker.ref);
  return `This conversation continues in a copy: ${named(session)}. The original is kept: /session resume ${shortId(original.sessionId)} returns to it.`;
}

async function show(invocation: Invocation): Promise<string> {
  const session = await currentSession(invocation);
  const { overrides } = session;
  const changed = Object.entries(overrides)
    .filter(([, value]) => typeof value === "string")
    .map(([name, value]) => `${name} ${String(value)}`);
  return [
    `Session ${session.sessionId}`,
    `Title: ${session.title ?? "(none yet)"}`,
    `Key: ${session.key}`,
    `${pluralize(session.messageCount, "message")}, ${pluralize(session.queued, "queued", "queued")}, created ${session.createdAt}`,
    tokensText(session.usage),
    `Cost: ${costText(session.cost)}`,
    ...(changed.length === 0 ? [] : [`Changed for this session: ${changed.join(", ")}`]),
  ].join("\n");
}

export const sessionCommands: readonly Command[] = [
  {
    name: "/new",
    usage: "/new [title]",
    summary: "start a new session; the previous one is kept",
    run: (invocation) => open(invocation, titleIn(invocation.argumentText)),
  },
  {
    name: "/session",
    usage: "/session [show | list [n] | new [title] | name <title> | resume <id|title> | fork [title]]",
    summary: "show, list, start, name, resume or fork sessions",
    async run(invocation) {
      const [what = "show", first] = invocation.words;
      const text = invocation.argumentText.slice(what.length).trim();
      switch (what.toLowerCase()) {
        case "show":
          return show(invocation);
        case "list":
          return list(invocation, first);
        case "new":
          return open(invocation, titleIn(text));
        case "name": {
          const title = titleIn(text);
          if (title === undefined) throw new UsageError("A title is required.");
          const { sessionId } = await invocation.deps.acts.ensure(invocation.speaker.route, invocation.speaker.ref);
          await invocation.deps.acts.rename(sessionId, title);
          return `This session is now named "${title}".`;
        }
        case "resume":
          return resume(invocation, text);
        case "fork":
          return fork(invocation, titleIn(text));
        default:
          throw new UsageError(`Unknown subcommand: /session ${what}.`);
      }
    },
  },
];
