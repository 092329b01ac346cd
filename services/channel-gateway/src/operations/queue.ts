// Queued messages, and how a session queues new ones.
import { operations, queueModes, store, type InputOf, type QueuedMessage, type QueueMode } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import { implement, OperationError, UsageError, type OperationCall } from "./operation.ts";

const maxRows = 100;
const shownRows = 50;

type Change = InputOf<typeof store.inboxEdit>["change"];

/** Throws OperationError when the row is no longer queued. A repeated call has the same `opId`, and the result of the first. */
async function edit({ deps }: OperationCall, opId: string, inboxId: string, change: Change): Promise<void> {
  const { changed } = await deps.bus.request(store.inboxEdit, { opId, inboxId, change });
  deps.look();
  if (!changed) throw new OperationError("not_waiting", "the message is no longer queued");
}

/** Throws OperationError when the row belongs to another session. */
async function checkRow(call: OperationCall, id: string, inboxId: string): Promise<void> {
  const { sessionId } = await call.session(id);
  const row = await call.deps.bus.request(store.inboxGet, { inboxId });
  if (row.sessionId === sessionId) return;
  throw new OperationError("not_found", `there is no message ${inboxId} in this session`);
}

function line(row: QueuedMessage, index: number): string {
  const who = row.from.origin === "user" ? (row.from.contact.name ?? row.from.contact.id) : row.from.origin;
  return `${index + 1}. [${row.mode}] ${who}: ${oneLine(row.text, 120)}`;
}

async function listText({ deps }: OperationCall, id: string): Promise<string> {
  const session = await deps.sessions.find(id);
  if (session === null) return "The queue is empty.";
  const { rows, more } = await deps.bus.request(store.inboxList, {
    sessionId: session.sessionId,
    limit: shownRows,
    order: deps.settings.queue.order,
  });
  const state = `Queue mode while the agent is busy: ${session.overrides.queueMode ?? deps.settings.queue.mode}.`;
  if (rows.length === 0) return `The queue is empty. ${state}`;
  return `${rows.map(line).join("\n")}${more ? "\n…" : ""}\n${state}`;
}

/** Finds a row by its number in the list or its id. Only owners may select messages of other people. */
async function listedRow(call: OperationCall, id: string, named: string): Promise<QueuedMessage> {
  const { sessionId } = await call.session(id);
  const { rows } = await call.deps.bus.request(store.inboxList, {
    sessionId,
    limit: shownRows,
    order: call.deps.settings.queue.order,
  });
  const row = /^\d{1,3}$/.test(named) ? rows[Number(named) - 1] : rows.find(({ inboxId }) => inboxId === named);
  if (row === undefined) {
    throw new OperationError("not_found", `no queued message matches "${named}"; /queue lists them`);
  }
  const { contact, channel, account, role } = call.speaker;
  const own = row.from.contact.id === contact.id && row.from.channel === channel && row.from.account === account;
  if (own || role === "owner") return row;
  throw new OperationError("conflict", "changing messages of other people is for the owner only");
}

const explained: Record<QueueMode, string> = {
  steer: "A message that arrives while I am busy joins the running turn.",
  queue: "A message that arrives while I am busy is answered after the running turn.",
  coalesce: "I wait briefly for further messages and answer them together.",
  interrupt: "A message that arrives while I am busy stops the running turn.",
  reject: "A message that arrives while I am busy is refused.",
};

export const queueOperations = [
  implement(operations.queueList, async ({ id }, call) => {
    const { sessionId } = await call.session(id);
    return call.deps.bus.request(store.inboxList, { sessionId, limit: maxRows, order: call.deps.settings.queue.order });
  }),

  implement(operations.queueChange, async ({ id, messageId, text, mode }, call) => {
    await checkRow(call, id, messageId);
    const opId = (what: string) => call.operationId(`queue:${what}:${messageId}`);
    if (text !== undefined) await edit(call, opId("text"), messageId, { do: "text", text });
    if (mode !== undefined) await edit(call, opId("mode"), messageId, { do: "mode", mode });
    return { changed: true as const };
  }),

  implement(operations.queueCancel, async ({ id, messageId }, call) => {
    await checkRow(call, id, messageId);
    await edit(call, call.operationId(`queue:cancel:${messageId}`), messageId, { do: "cancel" });
    return { cancelled: true as const };
  }),

  implement(operations.queueFlush, async ({ id }, call) => {
    const { sessionId } = await call.session(id);
    return call.deps.bus.request(store.inboxFlush, { sessionId });
  }),

  implement(operations.queueShow, async ({ id, action, message = "", text = "" }, call) => {
    if (action === "list") return listText(call, id);
    const row = await listedRow(call, id, message);
    // Not the row's id: when the command is repeated, another row can have the number.
    const opId = call.requestId(`queue:${action}:${message}`);
    await edit(call, opId, row.inboxId, action === "cancel" ? { do: "cancel" } : { do: "text", text });
    return action === "cancel" ? `Cancelled: ${oneLine(row.text, 120)}` : `Updated: ${oneLine(text, 120)}`;
  }),

  implement(operations.queueMode, async ({ id, mode: named }, call) => {
    const mode = queueModes.find((each) => each === named) ?? null;
    if (mode === null && named !== "default") {
      throw new UsageError(`Unknown mode "${named}". Use ${queueModes.join(", ")} or default.`);
    }
    await call.deps.acts.override((await call.ensureSession(id)).sessionId, { queueMode: mode });
    return explained[mode ?? call.deps.settings.queue.mode];
  }),

  implement(operations.queueText, () => {
    throw new UsageError("A text is required.");
  }),
];
