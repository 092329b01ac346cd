// The writes of a running turn. Each is one request to the store; afterwards the state follows and events are published.
import { faultPoint } from "@parley/chassis";
import {
  noUsage,
  store,
  type DurableEvent,
  type Finish,
  type Outgoing,
  type Part,
  type SessionState,
  type ToolStep,
  type ViewRecord,
} from "@parley/contracts";
import { appliesToOutput, redactedText } from "../hooks/matcher.ts";
import { audienceOf, readsUntrusted } from "../policy/taint.ts";
import { resolvePolicy } from "../policy/turn-policy.ts";
import { closedParts, committedEvents, releasedMessages, toolIntent, toolStep } from "../session/log-records.ts";
import { appendMessages, applyRecord } from "../session/view.ts";
import { textExpiryMs } from "../tools/message.ts";
import { dropAhead, type AheadCalls } from "./ahead-calls.ts";
import type { TurnDeps } from "./dependencies.ts";
import type { TimedReply } from "./model-step.ts";
import { endWithAnswer, endWithMessages, endWithReport, type Decision } from "./next-action.ts";
import {
  committedMessages,
  isTurnTainted,
  modelOf,
  okTokenOf,
  outputOf,
  publish,
  taintShown,
  textsSent,
  type WritableTurn,
} from "./state.ts";
import type { Round } from "./tool-round.ts";

/** Takes over the outcome of a round of tools. */
export function recordRound(turn: WritableTurn, round: Round): void {
  turn.unsettled = [...turn.unsettled, ...round.unsettled];
  turn.released = new Set([...turn.released, ...round.released]);
  if (round.failure !== null) return;
  turn.results = round.results;
  if (!round.skipped && round.waitingFor.length === 0) turn.open = [];
}

/**
 * Adds results and notes to the conversation between two model calls, and with `absorb` waiting input that may join.
 * `skipped`: the result of open calls that were not launched; null: there are none.
 */
export async function appendToLog(
  turn: WritableTurn,
  deps: TurnDeps,
  notes: readonly string[],
  { absorb = false, skipped = null }: { absorb?: boolean; skipped?: string | null } = {},
): Promise<void> {
  const { events, alsoTo } = await deps.leaderStore.request(store.turnAppend, {
    turnId: turn.claimed.turnId,
    results: turn.results.length,
    ...settledField(turn),
    tainted: isTurnTainted(deps, turn),
    skipped,
    notes: notes.map((text): Part[] => [{ type: "text", text }]),
    absorb,
  });
  faultPoint("agent.after_append");
  turn.alsoTo = alsoTo;
  turn.open = [];
  resultsWritten(turn);
  follow(turn, deps, events);
}

/** Commits a model's whole reply; undefined while the turn continues. `startCalls` receives the calls that it requests, before they are stored. */
export async function commitReply(
  turn: WritableTurn,
  deps: TurnDeps,
  reply: TimedReply,
  decision: Decision,
  startCalls: (steps: readonly ToolStep[]) => Promise<AheadCalls>,
): Promise<{ queued: boolean } | undefined> {
  const { claimed, nextStep: n, results } = turn;
  const { models, budgets, prefixes } = deps.model;
  const finish = decision.next === "finish" ? finishOf(turn, decision.finish) : null;
  const parts = closedParts(decision.parts, reply.rawStopReason, new Date().toISOString(), reply.stopSequence);
  const calls = decision.next === "tools" ? decision.calls.map((call) => toolIntent(call, turn.toolbox)) : [];
  const steps = calls.map((call, index) => toolStep(claimed.turnId, n + 1 + index, call));
  const note = decision.next === "again" ? decision.note : [];
  const costMicros = models.costOf(turn.model, reply.usage, Date.now());
  const usage = reply.usage ?? noUsage;
  if (turn.newPrefix) await prefixes.keep(turn.prefix);
  const tainted = isTurnTainted(deps, turn);
  const ahead = steps.some((step) => step.class === "pure") ? startCalls(steps) : turn.ahead;
  const { session } = turn;
  const committed = await deps.leaderStore.request(store.stepCommit, {
    turnId: claimed.turnId,
    n,
    model: reply.model,
    stopReason: reply.rawStopReason,
    usage,
    ...(costMicros === null ? {} : { costMicros }),
    timing: reply.timing,
    request: reply.request,
    parts,
    results: results.length,
    ...settledField(turn),
    tainted,
    toolCalls: calls,
    outgoing: finish === null ? [] : outgoingFor(turn, deps, finish),
    ...(note.length === 0 ? {} : { note }),
    ...(turn.newPrefix ? { prefixHash: turn.prefix.hash } : {}),
    finish,
  });
  turn.newPrefix = false;
  budgets.spend(claimed, costMicros);
  const written = {
    turnId: claimed.turnId,
    results,
    parts,
    model: reply.model,
    note,
    finish,
    tainted,
    callUsage: usage,
  };
  follow(turn, deps, committedEvents(written, committed));
  turn.streamedText = "";
  resultsWritten(turn);
  turn.nextStep = n + 1 + calls.length;
  turn.usage.committed(committed, calls.length);
  turn.open = steps;
  turn.cancelRequested = committed.cancelRequested;
  override(turn, deps, committed.overrides);
  // They were authorized under the session's rules as of before.
  turn.ahead = turn.session === session ? ahead : dropAhead(ahead);
  turn.inputWaits = committed.steerable;
  return finish === null ? undefined : { queued: committed.queued };
}

/**
 * Ends the turn without a further model call. `spokenText`: text for people, if it differs from what the output mode
 * sends; null: none.
 */
export async function commitFinish(
  turn: WritableTurn,
  deps: TurnDeps,
  finish: Finish,
  spokenText?: string | null,
): Promise<{ queued: boolean }> {
  faultPoint("agent.before_finish");
  const { streamedText, open, toolbox } = turn;
  const at = new Date().toISOString();
  const shown = streamedText === "" ? [] : closedParts([{ type: "text", text: streamedText }], "cancelled", at);
  // The next request contains the interrupted answer, so the prefix it was made under must be stored as well.
  const keepsPrefix = turn.newPrefix && shown.length > 0;
  if (keepsPrefix) await deps.model.prefixes.keep(turn.prefix);
  const unseen = unseenByHooks(turn, deps);
  // Results that no message contains yet may have arrived; whether they are untrusted is not known here.
  const tainted = isTurnTainted(deps, turn) || open.some(({ tool }) => readsUntrusted(tool, toolbox));
  const { events, queued } = await deps.leaderStore.request(store.turnFinish, {
    turnId: turn.claimed.turnId,
    parts: shown,
    model: shown.length === 0 ? null : turn.model.model,
    ...(keepsPrefix ? { prefixHash: turn.prefix.hash } : {}),
    ...settledField(turn),
    tainted,
    ...(unseen.length === 0 ? {} : { withhold: { steps: unseen, text: redactedText } }),
    unsettled: finish.state === "cancelled" ? "Cancelled" : "Interrupted before the call was run.",
    outgoing: spokenText === undefined ? outgoingFor(turn, deps, finish) : toPeople(turn, spokenText),
    finish,
  });
  faultPoint("agent.after_finish");
  follow(turn, deps, events);
  return { queued };
}

/** Parks the turn; false when what it waits for has arrived meanwhile. `wakeAt`: ISO 8601; null: no latest time. */
export async function park(
  turn: WritableTurn,
  deps: TurnDeps,
  { waitingFor, wakeAt }: Pick<Round, "waitingFor" | "wakeAt">,
): Promise<boolean> {
  faultPoint("agent.before_park");
  const { turnId } = turn.claimed;
  const waiting = turn.open.filter(({ n }) => waitingFor.includes(n));
  const { parked } = await deps.leaderStore.request(store.turnPark, {
    turnId,
    waitingFor,
    wakeAt,
    ...settledField(turn),
  });
  turn.unsettled = [];
  faultPoint("agent.after_park");
  if (parked) publish(deps, turn, { type: "turn.parked", turnId, waitingFor: waiting.map(({ tool }) => tool) });
  return parked;
}

/** Settles kept results in the store, so that the next leader does not run these calls again. */
export async function settleForNextLeader(turn: WritableTurn, { leaderStore }: TurnDeps): Promise<void> {
  const { turnId } = turn.claimed;
  for (const settled of turn.unsettled) await leaderStore.request(store.stepSettle, { turnId, ...settled });
  turn.unsettled = [];
}

/** Switches to another part of the conversation, with a new prefix; a compaction does not end taint. */
export async function showRecord(turn: WritableTurn, deps: TurnDeps, record: ViewRecord): Promise<void> {
  turn.hidden = taintShown(deps, turn);
  const messages = committedMessages(turn);
  applyRecord(turn.view, record);
  const kept = new Set(turn.view.messages);
  turn.earlier = releasedMessages(messages.filter((message) => !kept.has(message)));
  turn.prefix = await turn.assemble(turn.policy, audienceOf(turn.claimed, taintShown(deps, turn)));
  turn.newPrefix = true;
}

function finishOf(turn: WritableTurn, finish: Finish): Finish {
  const { claimed } = turn;
  const textsSentHere = textsSent(turn, true);
  return claimed.parent === null
    ? endWithAnswer(finish, outputOf(turn), textsSentHere)
    : endWithReport(finish, textsSentHere, claimed.sessionId);
}

function settledField({ unsettled }: WritableTurn): { settled?: WritableTurn["unsettled"] } {
  return unsettled.length === 0 ? {} : { settled: unsettled };
}

function resultsWritten(turn: WritableTurn): void {
  turn.results = [];
  turn.unsettled = [];
}

/** Open calls whose results still have to run through hooks. */
function unseenByHooks({ open, released, toolbox }: WritableTurn, { settings }: TurnDeps): number[] {
  return open
    .filter(({ n, tool }) => !released.has(n) && appliesToOutput(settings.hooks, toolbox.namesOf(tool)))
    .map(({ n }) => n);
}

/** Applies overrides that a person changed for this session. */
function override(turn: WritableTurn, deps: TurnDeps, overrides: SessionState["overrides"]): void {
  if (JSON.stringify(overrides) === JSON.stringify(turn.session.overrides)) return;
  turn.session = { ...turn.session, overrides };
  const before = turn.policy;
  turn.policy = resolvePolicy(deps.settings, turn.session);
  if (before.model !== turn.policy.model) turn.model = modelOf(deps, turn.claimed, turn.policy);
}

/** Applies events that the store has logged to the view and publishes them. */
function follow(turn: WritableTurn, deps: TurnDeps, events: readonly DurableEvent[]): void {
  for (const event of events) {
    appendMessages(turn.view, event.type === "message" ? [event.message] : [], event.seq);
    publish(deps, turn, event.type === "turn.finished" ? withSubagents(turn, deps, event) : event);
  }
}

function withSubagents(
  turn: WritableTurn,
  deps: TurnDeps,
  end: Extract<DurableEvent, { type: "turn.finished" }>,
): DurableEvent {
  const treeCost = deps.model.budgets.costWithSubagents(turn.claimed, end.cost);
  return treeCost === undefined ? end : { ...end, treeCost };
}

function outgoingFor(turn: WritableTurn, deps: TurnDeps, finish: Finish): Outgoing[] {
  const { unspoken } = deps.settings.output;
  const context = { output: turn.policy.output, sentTexts: textsSent(turn), unspoken, okToken: okTokenOf(deps, turn) };
  return toPeople(turn, endWithMessages(finish, context));
}

function toPeople({ claimed: { replyTo }, alsoTo }: WritableTurn, text: string | null): Outgoing[] {
  if (text === null || text === "") return [];
  const addresses = [...(replyTo === null ? [] : [replyTo]), ...alsoTo];
  return addresses.map((address) => ({ address, text, expiresInMs: textExpiryMs }));
}
