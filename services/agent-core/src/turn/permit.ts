// Whether one tool call may run now: what hooks say, what the permission engine decides, and the question to a person where
// one is needed. The question is durable; nothing waits here for its answer.
import { randomInt } from "node:crypto";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import {
  newId,
  store,
  WireError,
  type ClaimedTurn,
  type DurableEvent,
  type LiveEvent,
  type Outgoing,
  type ParleySettings,
  type SessionOverrides,
  type ToolStep,
} from "@parley/contracts";
import type { HookPlace } from "../hooks/payloads.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import { stopText, type Verdict } from "../hooks/verdict.ts";
import { callHash } from "../permissions/call-hash.ts";
import { readCall, type ReadCall } from "../permissions/call.ts";
import {
  decidePermission,
  type HookVerdict,
  type PermissionContext,
  type PermissionDecision,
} from "../permissions/decide.ts";
import { describeCall } from "../permissions/describe.ts";
import { rulesForAlways, updatePermissions } from "../permissions/session-rules.ts";
import { rulesFor, speakerOf } from "../permissions/speaker.ts";
import { inOwnWords } from "../tools/argument-names.ts";
import { wrongArguments } from "../tools/wrong-arguments.ts";
import { denialOf, isOwnerOnly, isRewrite, judgeRewrite } from "./approval-answer.ts";
import { addressText } from "./heading.ts";
import type { Policy } from "./policy.ts";
import type { Toolbox, TurnTool } from "./toolbox.ts";
import { isTainted, permissionTool, type Heard } from "./trust.ts";

export interface PermitDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  storeTimeoutMs: number;
  settings: ParleySettings;
  runHooks: RunHooks;
}

/** What is the same for all calls of a round. */
export interface PermitContext {
  turn: ClaimedTurn;
  policy: Policy;
  overrides: SessionOverrides;
  toolbox: Toolbox;
  place: HookPlace;
  heard: Heard;
  say: (event: DurableEvent | LiveEvent) => void;
}

export type Permit =
  | { verdict: "run"; input: string; notes: string[] }
  | { verdict: "refuse"; content: string; notes: string[] }
  /** A person is asked; `until`: ISO 8601. */
  | { verdict: "wait"; until: string }
  /** A hook ends the turn with this text. */
  | { verdict: "stop"; text: string }
  /** A person denied the call, and the turn ends with that. */
  | { verdict: "interrupt"; content: string };

export async function permit(
  deps: PermitDeps,
  context: PermitContext,
  step: ToolStep,
  tool: TurnTool,
  signal: AbortSignal,
): Promise<Permit> {
  const { name, aliases } = tool.descriptor;
  const facts = { tool: name, aliases, callId: step.callId, input: inOwnWords(name, step.input) };
  const asked = await deps.runHooks("PreToolUse", context.place, facts, signal);
  if (asked.continue === false) return { verdict: "stop", text: stopText(asked) };
  const notes = [...asked.contexts];
  if (asked.decision === "deny")
    return refuse(`A hook refused this call: ${asked.reason ?? "it gave no reason"}.`, notes);
  const input = inOwnWords(name, asked.updatedInput ?? step.input);

  const call = await readCall(permissionTool(tool, context.toolbox.contained), input);
  const permissions = permissionContext(deps.settings, context);
  const before = hookVerdict(asked, call);
  let decided = decidePermission(call, before === undefined ? permissions : { ...permissions, hook: before });
  if (decided.decision === "allow" && asked.decision === "ask" && decided.step === "matrix") {
    decided = {
      ...decided,
      decision: "ask",
      reason: asked.reason ?? "A hook wants a person to see this.",
      hookMayAnswer: false,
    };
  }
  if (decided.hookMayAnswer) {
    const answer = await deps.runHooks(
      "PermissionRequest",
      context.place,
      { ...facts, input, reason: decided.reason },
      signal,
    );
    if (answer.continue === false) return { verdict: "stop", text: stopText(answer) };
    notes.push(...answer.contexts);
    const hook = hookVerdict(answer, await rewrittenCall(answer, call, context.toolbox, tool));
    if (hook !== undefined) decided = decidePermission(call, { ...permissions, hook });
  }
  const final = decided.updatedInput === undefined ? input : JSON.stringify(decided.updatedInput);
  const hash = callHash(call.tool.name, final);
  // Somebody's no holds, whatever may have been allowed since.
  const denial = denialOf(step, hash);
  if (denial?.interrupt === true) return { verdict: "interrupt", content: denial.content };
  if (denial !== undefined) return refuse(denial.content, notes);
  if (decided.decision === "allow") return { verdict: "run", input: final, notes };
  if (decided.decision === "deny") return refuse(`Not allowed: ${decided.reason}`, notes);
  const wrong = await wrongArguments(tool.descriptor, final);
  // Nobody is asked about a call that cannot run.
  if (wrong !== undefined) return refuse(wrong, notes);
  return byPerson(deps, context, { step, tool, permissions }, { call, hash, input: final, decided, notes }, signal);
}

function refuse(content: string, notes: string[]): Permit {
  return { verdict: "refuse", content, notes };
}

interface Asked {
  call: ReadCall;
  hash: string;
  input: string;
  decided: PermissionDecision;
  notes: string[];
}

/** The answer of a person to this very call, or the question to one. */
async function byPerson(
  deps: PermitDeps,
  context: PermitContext,
  { step, tool, permissions }: { step: ToolStep; tool: TurnTool; permissions: PermissionContext },
  { call, hash, input, decided, notes }: Asked,
  signal: AbortSignal,
): Promise<Permit> {
  const { approval } = step;
  if (approval?.callHash === hash && approval.state === "pending")
    return { verdict: "wait", until: approval.expiresAt };
  if (approval?.callHash === hash && approval.state === "allowed") {
    if (isRewrite(call.tool.name, hash, approval.updatedInput)) {
      const { place, toolbox } = context;
      const rewriteDeps = { runHooks: deps.runHooks, place, permissions, contained: toolbox.contained };
      const judged = await judgeRewrite(rewriteDeps, step, tool, approval.updatedInput, signal);
      return "notes" in judged ? { ...judged, notes: [...notes, ...judged.notes] } : judged;
    }
    if (approval.always) await allowFromNowOn(deps, context, call);
    return { verdict: "run", input, notes };
  }
  const until = await ask(deps, context, step, { call, hash, input, reason: decided.reason });
  if (until === null) {
    return refuse(`Not allowed: ${decidePermission(call, { ...permissions, canAsk: false }).reason}`, notes);
  }
  await deps.runHooks(
    "Notification",
    context.place,
    { type: "permission_prompt", message: `${call.tool.name}: ${describeCall(call)}` },
    signal,
  );
  return { verdict: "wait", until };
}

/** Without what is easily mistaken for something else when it is read aloud or typed. */
const idLetters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const idLength = 5;

/** The time at which the question expires, ISO 8601; null: only an owner could answer, and no owner has an address. */
async function ask(
  deps: PermitDeps,
  { turn, place, say }: PermitContext,
  step: ToolStep,
  { call, hash, input, reason }: { call: ReadCall; hash: string; input: string; reason: string },
): Promise<string | null> {
  const expiresInMs = deps.settings.permissions.approval_seconds * 1_000;
  const summary = describeCall(call);
  for (;;) {
    const id = Array.from({ length: idLength }, () => idLetters[randomInt(idLetters.length)]).join("");
    const text = questionText({ id, tool: call.tool.name, summary, reason, expiresInMs });
    const address = turn.root.replyTo;
    const mine = address !== null && turn.root.trust === "owner";
    const ownerOnly = isOwnerOnly(turn);
    const outgoing: Outgoing[] = mine ? [{ address, text, expiresInMs }] : [];
    try {
      const { approval, seq } = await deps.bus.request(
        store.approvalRequest,
        {
          opId: newId(),
          epoch: deps.epoch,
          turnId: turn.turnId,
          n: step.n,
          id,
          tool: call.tool.name,
          callHash: hash,
          summary,
          reason,
          expiresInMs,
          outgoing,
          ...(mine || (turn.root.trust === "owner" && !ownerOnly) ? {} : { toOwner: { text, expiresInMs } }),
          input,
          ownerOnly,
        },
        { timeoutMs: deps.storeTimeoutMs },
      );
      if (approval === null) return null;
      deps.log.info(
        { session: place.sessionId, turn: turn.turnId, tool: call.tool.name, approval: approval.id },
        "a person is asked",
      );
      if (seq !== null) {
        say({
          type: "approval.requested",
          seq,
          turnId: turn.turnId,
          approvalId: approval.id,
          callId: step.callId,
          tool: approval.tool,
          summary: approval.summary,
          reason: approval.reason,
          expiresAt: approval.expiresAt,
          input,
        });
      }
      return approval.expiresAt;
    } catch (error) {
      // Another open question has this id.
      if (!WireError.is(error, "CONFLICT") || !error.message.includes(id)) throw error;
    }
  }
}

function questionText(question: {
  id: string;
  tool: string;
  summary: string;
  reason: string;
  expiresInMs: number;
}): string {
  const minutes = Math.max(1, Math.round(question.expiresInMs / 60_000));
  return [
    `May I use ${question.tool}?`,
    question.summary,
    question.reason,
    `Answer with /approve ${question.id} (or /approve ${question.id} always), or /deny ${question.id}. Without an answer in ${minutes} min it is a no.`,
  ].join("\n");
}

/** "Always" makes rules of the session, as narrow as they are useful. */
async function allowFromNowOn(deps: PermitDeps, context: PermitContext, call: ReadCall): Promise<void> {
  const rules = rulesForAlways(call);
  const updated = updatePermissions(
    context.overrides,
    { type: "add_rules", list: "allow", rules },
    deps.settings.permissions,
  );
  if (rules.length === 0 || "refused" in updated) return;
  context.overrides.allow = updated.permissions.allow;
  await deps.bus.request(
    store.sessionUpdate,
    { sessionId: context.turn.sessionId, overrides: { allow: updated.permissions.allow ?? null } },
    { timeoutMs: deps.storeTimeoutMs },
  );
}

function permissionContext(settings: ParleySettings, context: PermitContext): PermissionContext {
  const { turn, policy, overrides } = context;
  const speaker = speakerOf(turn.root.trust);
  const addresses = [turn.replyTo, turn.root.replyTo, ...turn.alsoTo].filter((address) => address !== null);
  return {
    mode: policy.permissionMode,
    allowBypass: settings.permissions.allow_bypass,
    disabled: settings.tools.disabled,
    rules: rulesFor(speaker, settings.permissions, overrides),
    speaker,
    tainted: settings.permissions.taint && isTainted(turn, context.heard),
    canAsk: turn.root.approvals !== "none",
    ownAddresses: addresses.map(addressText),
  };
}

/** What a hook's word means for the engine; asking and silence mean nothing to it. */
function hookVerdict(verdict: Verdict, updated: ReadCall): HookVerdict | undefined {
  if (verdict.decision !== "allow" && verdict.decision !== "deny") return undefined;
  const reason = verdict.reason ?? `A hook ${verdict.decision === "allow" ? "allows" : "refuses"} it.`;
  return { decision: verdict.decision, reason, ...(verdict.updatedInput === null ? {} : { updated }) };
}

async function rewrittenCall(verdict: Verdict, call: ReadCall, toolbox: Toolbox, tool: TurnTool): Promise<ReadCall> {
  return verdict.updatedInput === null ? call : readCall(permissionTool(tool, toolbox.contained), verdict.updatedInput);
}
