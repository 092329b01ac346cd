// What a running turn knows, as data, and what can be derived from it. Only `loop.ts` and `commit.ts` assign to its fields; the
// hooks, compaction and the end of a turn receive a WritableTurn to call them. The view outlives the turn and is updated in place.
import type {
  ClaimedTurn,
  InlineSettlement,
  LiveEvent,
  Message,
  SessionEvent,
  SessionState,
  ToolResult,
  ToolStep,
} from "@parley/contracts";
import { sessionEvent } from "@parley/contracts";
import { viewMessages } from "../compaction/view-messages.ts";
import type { HookContext } from "../hooks/payloads.ts";
import { activeMs, type Progress } from "../limits/limits.ts";
import { repeatedCalls, roundsOf } from "../limits/loop-guards.ts";
import { TurnUsage } from "../limits/limits.ts";
import type { TurnModel } from "../model/failover.ts";
import { isTainted, mergeTaint, taintOf, TaintScan, type Taint } from "../policy/taint.ts";
import { resolvePolicy, type TurnPolicy } from "../policy/turn-policy.ts";
import { withoutToolTraffic } from "../prompt/build-prompt.ts";
import { showsSource, type MessageHeaderOptions } from "../prompt/message-header.ts";
import { sentTexts } from "../prompt/sent-texts.ts";
import { inOrder, messagesOf } from "../session/log-records.ts";
import type { Prefix } from "../session/prefix.ts";
import type { SessionView } from "../session/view.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import { noneAhead, type AheadCalls } from "./ahead-calls.ts";
import type { TurnDeps, TurnStart } from "./dependencies.ts";

/** The state of a running turn in this leader. Only `loop.ts` and `commit.ts` assign to its fields. */
export interface WritableTurn {
  readonly claimed: ClaimedTurn;
  readonly view: SessionView;
  readonly toolbox: Toolbox;
  /** Document changes for the model; null: none. */
  readonly news: string | null;
  /** Builds the prefix as of now. */
  readonly assemble: TurnStart["assemble"];
  readonly usage: TurnUsage;
  readonly taintScan: TaintScan;
  session: SessionState;
  policy: TurnPolicy;
  model: TurnModel;
  prefix: Prefix;
  /** The next commit must refer to the prefix. */
  newPrefix: boolean;
  /** Calls whose results no message contains yet. */
  open: readonly ToolStep[];
  /** Those of them that were started before their step was committed. */
  ahead: Promise<AheadCalls>;
  /** Results that no message contains yet, in call order; they form the next message. */
  results: readonly ToolResult[];
  /** Results that the store does not have yet. */
  unsettled: InlineSettlement;
  /** Open calls whose results may be shown: no hook on them is pending. */
  released: ReadonlySet<number>;
  nextStep: number;
  /** As of the last commit. */
  cancelRequested: boolean;
  /** Streamed text of a model call that is not committed; stored when the call is interrupted. */
  streamedText: string;
  /** Input that may join the turn waits. */
  inputWaits: boolean;
  /** The provider refused a prompt as too long, for which compacting is tried once, or compacting for a full window removed nothing. */
  overflowed: boolean;
  /** The turn's messages that the view no longer contains, without what nobody reads of them. */
  earlier: readonly Message[];
  /** The taint of these messages. */
  hidden: Taint;
  /** Further addresses for the answer. */
  alsoTo: ClaimedTurn["alsoTo"];
}

/** The same state for everyone else. */
export type TurnState = Readonly<WritableTurn>;

export function beginTurn(deps: TurnDeps, start: TurnStart): WritableTurn {
  const { claimed, session, steerable, ...rest } = start;
  const policy = resolvePolicy(deps.settings, session);
  return {
    ...rest,
    claimed,
    session,
    usage: new TurnUsage(claimed),
    taintScan: new TaintScan(),
    policy,
    model: modelOf(deps, claimed, policy),
    open: claimed.openSteps,
    ahead: Promise.resolve(noneAhead),
    results: [],
    unsettled: [],
    released: new Set(),
    nextStep: claimed.nextStep,
    cancelRequested: claimed.cancelRequested,
    streamedText: "",
    inputWaits: steerable,
    overflowed: false,
    alsoTo: claimed.alsoTo,
  };
}

/** The model of this policy; a replacement is announced in the session. */
export function modelOf(deps: TurnDeps, claimed: ClaimedTurn, policy: TurnPolicy): TurnModel {
  const { turnId } = claimed;
  return deps.model.models.turnModelOrMain(policy, {
    onFailover: (failover) => publish(deps, { claimed }, { type: "model.failover", turnId, ...failover }),
    onUnavailable: (error) => {
      deps.log.warn({ err: error, turnId }, "session model unavailable: the agent's own model answers");
      const text = `${error.message}. The agent's own model answers.`;
      publish(deps, { claimed }, { type: "notice", turnId, text });
    },
  });
}

/** Publishes an event of the turn's session. */
export function publish(
  { bus }: Pick<TurnDeps, "bus">,
  { claimed }: Pick<TurnState, "claimed">,
  event: LiveEvent | SessionEvent,
): void {
  bus.publish(sessionEvent, event, { session: claimed.sessionId });
}

/** The context for hooks. */
export function hookContextOf({ claimed, policy }: TurnState): HookContext {
  const { sessionId, sessionKey, turnId } = claimed;
  const { permissionMode, profile } = policy;
  return { sessionId, sessionKey, turnId, permissionMode, profile };
}

/** The running turn's messages, including uncommitted results, and what is known of those that the view no longer contains. */
export function turnMessages(turn: TurnState): Message[] {
  return [...committedMessages(turn), ...pendingMessages(turn)];
}

/** The same without uncommitted results. */
export function committedMessages({ claimed, earlier, view }: TurnState): Message[] {
  return inOrder(earlier, messagesOf(claimed.turnId, view.messages));
}

/** Results that no message contains yet, as the message they will form. */
export function pendingMessages({ results, view, claimed }: TurnState): Message[] {
  if (results.length === 0) return [];
  const { turnId } = claimed;
  return [{ seq: view.seq + 1, role: "tool", turnId, parts: [...results], model: null, createdAt: "" }];
}

/**
 * The messages under the view's record, including uncommitted results; `requested`: those that a request contains.
 */
export function visibleMessages(
  { settings }: Pick<TurnDeps, "settings">,
  turn: TurnState,
): { all: Message[]; requested: Message[] } {
  const all = viewMessages(turn.view.record, [...turn.view.messages, ...pendingMessages(turn)]);
  const textOnly = settings.context.history === "text_only";
  return { all, requested: textOnly ? withoutToolTraffic(all, turn.claimed.turnId) : all };
}

/** The input of permission checks, document access and memory access. */
export function taintShown(deps: Pick<TurnDeps, "settings">, turn: TurnState): Taint {
  const { group } = taintOf(turnMessages(turn), turn.toolbox);
  const { requested } = visibleMessages(deps, turn);
  const pending = turn.results.length === 0 ? 0 : 1;
  const untrusted = turn.taintScan.shows(turn.view.record, requested, pending, turn.toolbox);
  return mergeTaint(turn.hidden, { untrusted, group });
}

/** Whether the turn is tainted: its messages are marked so, even when `permissions.taint` is off. */
export function isTurnTainted(deps: Pick<TurnDeps, "settings">, turn: TurnState): boolean {
  return isTainted(turn.claimed, taintShown(deps, turn));
}

/** How messages are headed in requests; undefined: they are not, in a sub-agent's session. */
export function headingsOf(
  { settings }: Pick<TurnDeps, "settings">,
  { session, policy, claimed }: TurnState,
): MessageHeaderOptions | undefined {
  if (session.parentId !== null) return undefined;
  return { timeZone: settings.agent.time_zone, source: showsSource(settings, policy, claimed.sessionKey) };
}

/** How many tokens the caller lets the turn generate from now on; undefined: there is no such limit. */
export function outputTokensLeft({ claimed, usage }: TurnState): number | undefined {
  const limit = claimed.answer?.maxOutputTokens;
  return limit === undefined ? undefined : Math.max(0, limit - usage.totals.usage.outputTokens);
}

/** Where the answer of the turn is: a caller that requires JSON gets the final text in any case. */
export function outputOf({ claimed, policy }: TurnState): TurnPolicy["output"] {
  return claimed.answer?.jsonSchema === undefined ? policy.output : "final_text";
}

/** Texts that the tool `message` has sent in this turn; `here`: only those to its own conversation. */
export function textsSent(turn: TurnState, here = false): string[] {
  const isMessageTool = (name: string) => turn.toolbox.find(name)?.descriptor.name === "message";
  return sentTexts(turnMessages(turn), isMessageTool, here);
}

/** The answer by which a heartbeat reports nothing; undefined for every other turn. */
export function okTokenOf({ settings }: Pick<TurnDeps, "settings">, { claimed }: TurnState): string | undefined {
  return claimed.trust === "heartbeat" ? settings.heartbeat.ok_token : undefined;
}

export function progressOf({ model: { budgets } }: Pick<TurnDeps, "model">, turn: TurnState): Progress {
  const messages = turnMessages(turn);
  return {
    ...turn.usage.totals,
    elapsedMs: activeMs(turn.claimed, Date.now()),
    treeMicroUsd: budgets.treeMicroUsd(turn.claimed),
    dayMicroUsd: budgets.dayMicroUsd(),
    earlierModelSteps: turn.claimed.earlier?.modelCalls ?? 0,
    earlierMicroUsd: turn.claimed.earlier?.costMicros ?? 0,
    roundsWithoutTools: roundsOf(messages).withoutTools,
    repeatedCalls: repeatedCalls(messages),
  };
}
