// Slash commands about the conversation that they are sent in: state, cost, model, compaction, and what runs.
import { setTimeout as delay } from "node:timers/promises";
import {
  efforts,
  modelTitle,
  operations,
  permissionModes,
  store,
  todosText,
  toolStop,
  type Cost,
  type OutputOf,
  type ParleySettings,
} from "@parley/contracts";
import { nameUuid, oneLine, pluralize } from "@parley/kit";
import { version } from "@parley/chassis";
import { costText, count, formatAge, tokensText } from "./format.ts";
import { implement, UsageError, type OperationCall } from "./operation.ts";
import { startedByOf } from "./started-by.ts";

type Process = OutputOf<typeof store.processList>["processes"][number];

const dayMs = 86_400_000;
/** A running command delays the sender's next message, so it waits no longer than this for a compaction. */
const compactWaitMs = 8_000;
/** How many processes the answer lists; the others are only counted. */
const namedProcesses = 3;
const commandChars = 60;
/** The rest of an answer is dropped when it cannot be sent within this time. */
const restExpiresMs = 60 * 60_000;
/** How long a tool-runner may take to end a command. */
const stopMs = 4_000;

async function status({ deps, speaker }: OperationCall): Promise<string> {
  const owner = speaker.role === "owner";
  const [session, model, { approvals }] = await Promise.all([
    deps.sessions.find(speaker.route),
    deps.acts.model(),
    owner ? deps.bus.request(store.approvalList, { pending: true, limit: 20 }) : { approvals: [] },
  ]);
  const own = session?.overrides.model;
  const lines = [
    `Parley ${version}`,
    model === null ? "Model: unknown, no agent-core is responding" : `Model: ${own ?? modelTitle(model)}`,
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

/** Empty when the rest follows by itself. */
async function more({ deps, speaker: { channel, account, conversation, ref } }: OperationCall): Promise<string> {
  const opId = nameUuid(`more:${ref}`);
  const { found } = await deps.bus.request(store.outboxMore, {
    opId,
    channel,
    account,
    conversation,
    expiresInMs: restExpiresMs,
  });
  return found ? "" : "There is nothing more of the last answers here.";
}

/** Describes what was stopped; empty when nothing was. */
function stopText({ turns, cancelledQueued }: { turns: readonly unknown[]; cancelledQueued: number }): string {
  const messages =
    cancelledQueued === 0
      ? ""
      : `${pluralize(cancelledQueued, "queued message was", "queued messages were")} cancelled.`;
  const subagents = turns.length > 1 ? ` ${pluralize(turns.length - 1, "sub-agent")} stopped too.` : "";
  if (turns.length === 0) return messages;
  return `Stopped.${subagents}${messages === "" ? "" : ` ${messages}`}`;
}

/** Lists the background processes, and how to end them. */
function processesText(processes: readonly Process[], stopped: string): string {
  const named = processes
    .slice(0, namedProcesses)
    .map(({ command, startedAt }) => `"${oneLine(command, commandChars)}" (since ${formatAge(startedAt, Date.now())})`);
  const others = processes.length > namedProcesses ? ` and ${processes.length - namedProcesses} more` : "";
  const running = pluralize(processes.length, "background process continues", "background processes continue");
  const begin = stopped === "" ? "No turn is running. " : `${stopped} `;
  return `${begin}${running}: ${named.join(", ")}${others}. /stop all ends ${processes.length === 1 ? "it" : "them"}.`;
}

/** Ends the session's processes on each tool-runner. Returns the number of processes that could not be reached. */
async function endProcesses({ deps }: OperationCall, processes: readonly Process[]): Promise<number> {
  const placeOf = ({ sessionId, replica }: Process) => `${sessionId} ${replica}`;
  const unreached = new Set<string>();
  await Promise.all(
    [...new Map(processes.map((each) => [placeOf(each), each])).values()].map(async (one) => {
      const { sessionId, replica } = one;
      await deps.bus
        .request(toolStop, { sessionId }, { params: { replica }, timeoutMs: stopMs })
        .catch(() => unreached.add(placeOf(one)));
    }),
  );
  return processes.filter((each) => unreached.has(placeOf(each))).length;
}

function endedText(stopped: string, processes: number, unreached: number): string {
  const ended = processes - unreached;
  return [
    ...(stopped === "" ? [] : [stopped]),
    ...(ended === 0 ? [] : [`${pluralize(ended, "background process was", "background processes were")} ended.`]),
    ...(unreached === 0
      ? []
      : [
          `${pluralize(unreached, "background process", "background processes")} could not be reached: the tool-runner is not responding. Try /stop all again in a minute.`,
        ]),
  ].join(" ");
}

async function stop(call: OperationCall, all: boolean): Promise<string> {
  const { deps, speaker } = call;
  const session = await deps.sessions.find(speaker.route);
  if (session === null) return "Nothing is running.";
  const { sessionId } = session;
  const stopped = stopText(await deps.cancel({ sessionId, queued: true, background: all, ...startedByOf(speaker) }));
  // Background processes belong to the session, so only the owner sees and ends them.
  if (speaker.role !== "owner") return stopped === "" ? "You have no running turn." : stopped;
  // Listed after the stop: a process that a tool call waited for ends with the call.
  const { processes } = await deps.bus.request(store.processList, { sessionId });
  if (processes.length === 0) return stopped === "" ? "Nothing is running." : stopped;
  if (!all) return processesText(processes, stopped);
  return endedText(stopped, processes.length, await endProcesses(call, processes));
}

/** Returns the chosen value, null for `default`. Throws UsageError for any other value. */
function choice<T extends string>(value: string, choices: readonly T[]): T | null {
  const found = choices.find((each) => each === value);
  if (found !== undefined) return found;
  if (value === "default") return null;
  throw new UsageError(`"${value}" is not one of ${[...new Set([...choices, "default"])].join(", ")}.`);
}

function sum(costs: readonly Cost[]): Cost {
  return {
    micros: costs.reduce((total, { micros }) => total + micros, 0),
    unpricedCalls: costs.reduce((total, { unpricedCalls }) => total + unpricedCalls, 0),
  };
}

async function costByDay({ deps }: OperationCall, days: number): Promise<string> {
  const sinceDay = new Date(Date.now() - (days - 1) * dayMs).toISOString().slice(0, 10);
  const { rows } = await deps.bus.request(store.usageReport, { sinceDay });
  const span = days === 1 ? "Today (UTC)" : `The last ${days} days (UTC)`;
  if (rows.length === 0) return `${span}: no model calls.`;
  const lines = rows.map(
    ({ day, model, calls, cost }) =>
      `${days === 1 ? "" : `${day}  `}${model}: ${pluralize(calls, "call")}, ${costText(cost)}`,
  );
  return [`${span}: ${costText(sum(rows.map(({ cost }) => cost)))}`, ...lines].join("\n");
}

async function compact(call: OperationCall, id: string, instructions: string | undefined): Promise<string> {
  const { sessionId } = await call.session(id);
  const work = call.deps.acts.compact(sessionId, instructions);
  const done = await Promise.race([work, delay(compactWaitMs, { outcome: "running" as const }, { ref: false })]);
  // After the "in progress" answer no failure is reported.
  work.catch(() => undefined);
  switch (done.outcome) {
    case "running":
      return "Compaction is in progress; it may take several minutes.";
    case "compacted": {
      const sizes = `Compacted: from about ${count(done.tokensBefore)} to about ${count(done.tokensAfter)} tokens.`;
      return done.notice === null ? sizes : `${sizes} ${done.notice}`;
    }
    case "nothing":
      return "There is nothing to compact.";
    default:
      return "A turn is running. The conversation is compacted when it ends.";
  }
}

/** The models that the settings name, and how to use one. Pure. */
function modelsText({ agent, models, profiles }: ParleySettings): string {
  const named = [
    agent.model,
    ...models.fallback,
    ...Object.keys(models.known),
    ...Object.values(profiles).map((profile) => profile.model),
  ];
  const known = [...new Set(named.filter((each) => each !== undefined))];
  const list = known.length === 0 ? "The settings name no model." : `Models in the settings: ${known.join(", ")}.`;
  return `${list} /model <name> uses one of them, or any other model of a provider whose key is set: anthropic:<id>, openai:<id>, rehearsal.`;
}

export const conversationOperations = [
  implement(operations.conversationStatus, (_input, call) => status(call)),
  implement(operations.conversationMore, (_input, call) => more(call)),
  implement(operations.sessionsStop, ({ all }, call) => stop(call, all)),
  implement(operations.sessionsCompactSoon, ({ id, instructions }, call) => compact(call, id, instructions)),

  implement(operations.sessionsModel, async ({ id, value }, call) => {
    const { acts, sessions } = call.deps;
    if (value === undefined) {
      const [session, model] = await Promise.all([sessions.find(id), acts.model()]);
      const own = session?.overrides.model;
      const others = modelsText(call.deps.settings);
      if (own !== undefined) return `This session's model is ${own}; /model default resets it.\n${others}`;
      if (model === null) return "No agent-core is responding; try again in a moment.";
      return `The model is ${modelTitle(model)}${model.note === null ? "" : `: ${model.note}`}.\n${others}`;
    }
    const model = value.toLowerCase() === "default" ? null : value;
    await acts.override((await call.ensureSession(id)).sessionId, { model });
    return model === null ? "This session uses the configured model again." : `This session uses ${model} from now on.`;
  }),

  implement(operations.sessionsEffort, async ({ id, value }, call) => {
    const { acts, sessions, settings } = call.deps;
    if (value === undefined) {
      const now = (await sessions.find(id))?.overrides.effort ?? settings.agent.effort;
      return now === undefined ? "The effort is not set; the model decides." : `The effort is ${now}.`;
    }
    const effort = choice(value, efforts);
    await acts.override((await call.ensureSession(id)).sessionId, { effort });
    return effort === null ? "The effort is reset to the configured value." : `The effort is ${effort} from now on.`;
  }),

  implement(operations.sessionsMode, async ({ id, value }, call) => {
    const { acts, sessions, settings } = call.deps;
    if (value === undefined) {
      const now = (await sessions.find(id))?.overrides.permissionMode ?? settings.permissions.mode;
      return `The permission mode is ${now}.`;
    }
    const permissionMode = choice(value, permissionModes) ?? "default";
    await acts.override((await call.ensureSession(id)).sessionId, { permissionMode });
    return `The permission mode is ${permissionMode} from now on.`;
  }),

  implement(operations.sessionsWorkspace, async ({ id, value }, call) => {
    const { acts, sessions, settings } = call.deps;
    if (value === undefined) {
      const now = (await sessions.find(id))?.overrides.workspace;
      const names = Object.keys(settings.workspace.folders);
      const others = names.length === 0 ? "The settings name no other one." : `Others: ${names.join(", ")}.`;
      return `This session works in ${now === undefined ? "the workspace" : `the workspace "${now}"`}. ${others}`;
    }
    const workspace = value === "default" ? null : value;
    await acts.override((await call.ensureSession(id)).sessionId, { workspace });
    return workspace === null
      ? "This session works in the workspace."
      : `This session works in the workspace "${workspace}".`;
  }),

  implement(operations.todosList, async ({ id }, { deps }) => {
    const todos = (await deps.sessions.find(id))?.todos ?? [];
    if (todos.length === 0)
      return "The todo list is empty. The agent creates one for work with several steps; you can ask for it.";
    const done = todos.filter((todo) => todo.status === "completed").length;
    return `${done} of ${todos.length} done:\n${todosText(todos)}`;
  }),

  implement(operations.usageCost, async ({ id, show, days }, call) => {
    if (show === "days") return costByDay(call, days);
    const session = show === "session" ? await call.session(id) : await call.deps.sessions.find(id);
    const own = session === null ? [] : [`This session: ${costText(session.cost)}; ${tokensText(session.usage)}.`];
    return [...own, ...(show === "both" ? [await costByDay(call, 1)] : [])].join("\n");
  }),
];
