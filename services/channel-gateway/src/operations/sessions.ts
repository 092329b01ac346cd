// Sessions: list, read, start, resume, copy, change, stop and compact them.
import { controlStreaming, operations, store, textOf, type SessionSummary } from "@parley/contracts";
import { omitUndefined, pluralize } from "@parley/kit";
import { costText, formatAge, shortId, tokensText } from "./format.ts";
import { implement, OperationError, type OperationCall } from "./operation.ts";
import { lastMessageAt, recap } from "./recap.ts";
import { awaitService } from "./session-service.ts";

/** How many messages back the recap searches. */
const recapMessages = 100;

/** A number in a list of sessions. */
const listNumber = /^[1-9]\d?$/;

/** The name of a session in an answer. */
function named(session: SessionSummary): string {
  return `${session.title === null ? "without a title" : `"${session.title}"`} (${shortId(session.sessionId)})`;
}

function line(session: SessionSummary, index: number, currentId: string | undefined): string {
  const mark = `${session.sessionId === currentId ? "→" : " "}${String(index + 1).padStart(3)}.`;
  const archived = session.status === "archived" ? ", archived" : "";
  const at = formatAge(session.updatedAt, Date.now());
  return `${mark} ${shortId(session.sessionId)}  ${session.title ?? "(no messages yet)"} · ${pluralize(session.messageCount, "message")} · ${at}${archived}`;
}

function sessionText(session: SessionSummary): string {
  const changed = Object.entries(session.overrides).flatMap(([name, value]) =>
    typeof value === "string" ? [`${name} ${value}`] : [],
  );
  return [
    `Session ${session.sessionId}`,
    `Title: ${session.title ?? "none; the first message gives it one"}`,
    `Key: ${session.key}`,
    `${pluralize(session.messageCount, "message")}, ${pluralize(session.queued, "queued", "queued")}, created ${session.createdAt}`,
    tokensText(session.usage),
    `Cost: ${costText(session.cost)}`,
    ...(changed.length === 0 ? [] : [`Changed for this session: ${changed.join(", ")}`]),
  ].join("\n");
}

async function resumedText({ deps }: OperationCall, session: SessionSummary): Promise<string> {
  const range = { sessionId: session.sessionId, afterSeq: 0, beforeSeq: Number.MAX_SAFE_INTEGER, limit: recapMessages };
  const { messages } = await deps.bus.request(store.sessionMessages, range);
  const size = `${pluralize(session.messageCount, "message")}, ${formatAge(lastMessageAt(session, messages), Date.now())}`;
  return [`This conversation continues with session ${named(session)}, ${size}.`, ...recap(messages)].join("\n");
}

/** `wanted`: the number of a session in /session list, else its id, key or title. */
async function resume({ deps }: OperationCall, route: string, wanted: string): Promise<SessionSummary> {
  const listed = listNumber.test(wanted) ? await deps.bus.request(store.sessionList, { limit: Number(wanted) }) : null;
  const bound = await deps.acts.resume(route, listed?.sessions[Number(wanted) - 1]?.sessionId ?? wanted);
  if (bound.outcome === "found") return bound.session;
  if (bound.outcome === "not_found") throw new OperationError("not_found", `there is no session "${wanted}"`);
  const ids = bound.sessions.map(({ sessionId }) => sessionId).join(", ");
  throw new OperationError("ambiguous", `several sessions have the title "${wanted}": ${ids}`);
}

export const sessionOperations = [
  implement(
    operations.sessionsList,
    ({ subagents, calls, messages, parent: parentId, ...query }, { deps }) =>
      deps.bus.request(
        store.sessionList,
        omitUndefined({
          ...query,
          parentId,
          subagents: subagents === "true",
          calls: calls === "true",
          messages: messages === "true",
        }),
      ),
    async ({ sessions }, { deps, speaker }) => {
      if (sessions.length === 0) return "There are no sessions yet.";
      const current = await deps.sessions.find(speaker.route);
      return `${sessions.map((session, index) => line(session, index, current?.sessionId)).join("\n")}\n/session resume <number or id> continues one.`;
    },
  ),

  implement(
    operations.sessionsGet,
    async ({ id }, call) => ({ session: await call.session(id) }),
    ({ session }) => sessionText(session),
  ),

  implement(operations.sessionsMessages, async ({ id, after, limit }, call) => {
    const { sessionId } = await call.session(id);
    return call.deps.bus.request(store.sessionMessages, { sessionId, afterSeq: after, limit });
  }),

  implement(operations.sessionsStreaming, async ({ id }, call) => {
    const { sessionId } = await call.session(id);
    return awaitService("agent-core", call.deps.bus.request(controlStreaming, { sessionId }));
  }),

  implement(operations.sessionsRead, async ({ session, after, limit }, call) => {
    const { sessionId } = await call.session(session);
    const found = await call.deps.bus.request(store.sessionMessages, { sessionId, afterSeq: after, limit });
    const messages = found.messages.map(({ seq, role, createdAt, parts }) => ({
      seq,
      role,
      at: createdAt,
      text: textOf(parts),
      calls: parts.flatMap((part) => (part.type === "tool_call" ? [part.name] : [])),
    }));
    return { session: sessionId, messages, next: messages.at(-1)?.seq ?? after, more: found.more };
  }),

  implement(operations.sessionsCancel, async ({ id, ...what }, call) => {
    const { sessionId } = await call.session(id);
    return call.deps.cancel(omitUndefined({ sessionId, ...what }));
  }),

  implement(
    operations.sessionsOpen,
    async (input, call): Promise<{ session: SessionSummary; previousId?: string | null }> => {
      const { acts } = call.deps;
      const { ref } = call.speaker;
      if (input.action === "new") return acts.open(input.route, input, ref);
      if (input.action === "resume") return { session: await resume(call, input.route, input.session) };
      const original = await call.session(input.session);
      return { session: await acts.fork(original.sessionId, input, ref), previousId: original.sessionId };
    },
    ({ session, previousId = null }, call, { action }) => {
      const back = previousId === null ? "" : `: /session resume ${shortId(previousId)} returns to it.`;
      if (action === "resume") return resumedText(call, session);
      if (action === "fork")
        return `This conversation continues in a copy: ${named(session)}. The original is kept${back}`;
      const previous = back === "" ? "" : ` The previous session is kept${back}`;
      return `New session started${session.title === null ? "" : `: "${session.title}"`}.${previous}`;
    },
  ),

  implement(
    operations.sessionsChange,
    async ({ id, title, status, overrides }, call) => {
      const { acts } = call.deps;
      let session = await call.ensureSession(id);
      const { sessionId } = session;
      // Overrides may be refused, so they are applied first.
      if (overrides !== undefined) session = await acts.override(sessionId, overrides);
      if (title !== undefined) session = await acts.rename(sessionId, title);
      if (status !== undefined) session = await acts.archive(sessionId, status === "archived");
      return { session };
    },
    (_output, _call, { title }) => `This session is now named "${title ?? ""}".`,
  ),

  implement(operations.sessionsCompact, async ({ id, instructions }, call) => {
    const { sessionId } = await call.session(id);
    return call.deps.acts.compact(sessionId, instructions);
  }),
];
