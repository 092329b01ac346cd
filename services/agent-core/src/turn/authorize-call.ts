// Authorizes one tool call: runs hooks, evaluates the permission rules, and requests approval where required. The
// request is durable; nothing here waits for its answer.
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
import type { HookContext } from "../hooks/payloads.ts";
import type { RunHooks } from "../hooks/run-hooks.ts";
import type { SignGrant } from "../policy/grant-signer.ts";
import { stopText, type Verdict } from "../hooks/verdict.ts";
import { callHash } from "../policy/call-hash.ts";
import { parseCall, type ParsedCall } from "../policy/parsed-call.ts";
import {
  decidePermission,
  type HookVerdict,
  type PermissionContext,
  type PermissionDecision,
} from "../policy/decide.ts";
import { describeCall, tooLongToApprove } from "../policy/describe.ts";
import { updatePermissions } from "../policy/session-rules.ts";
import { rulesFor, principalOf, type TurnGrants } from "../policy/principal.ts";
import { reachesWeb, webTargetOf } from "../policy/web-access.ts";
import { guestRules, roleOf } from "../policy/workspace-access.ts";
import { normalizeArguments } from "../tools/normalize-arguments.ts";
import { argumentErrors } from "../tools/validate-arguments.ts";
import { denialOf, isOwnerOnly, isRewrite, judgeRewrite } from "./approval-answer.ts";
import { alwaysRules, questionText } from "./approval-question.ts";
import { formatAddress } from "../prompt/message-header.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";
import type { Toolbox, TurnTool } from "../tools/toolbox.ts";
import { isContainedFor, isTainted, permissionTool, type Taint } from "../policy/taint.ts";

export interface AuthorizationDeps {
  bus: Bus;
  log: Logger;
  epoch: number;
  signGrant: SignGrant;
  storeTimeoutMs: number;
  settings: ParleySettings;
  runHooks: RunHooks;
}

/** The same for all calls of a round. */
export interface AuthorizationContext {
  turn: ClaimedTurn;
  policy: TurnPolicy;
  overrides: SessionOverrides;
  toolbox: Toolbox;
  place: HookContext;
  heard: Taint;
  /** The addresses that owners wrote in this conversation. */
  given: () => ReadonlySet<string>;
  say: (event: DurableEvent | LiveEvent) => void;
}

export type Authorization =
  | { verdict: "run"; input: string; notes: string[] }
  | { verdict: "refuse"; content: string; notes: string[] }
  /** Approval is pending; `until`: ISO 8601. */
  | { verdict: "wait"; until: string }
  /** A hook ends the turn with this text. */
  | { verdict: "stop"; text: string }
  /** A person denied the call, which ends the turn. */
  | { verdict: "interrupt"; content: string };

export async function authorizeToolCall(
  deps: AuthorizationDeps,
  context: AuthorizationContext,
  step: ToolStep,
  tool: TurnTool,
  signal: AbortSignal,
): Promise<Authorization> {
  const { name, aliases } = tool.descriptor;
  const facts = { tool: name, aliases, callId: step.callId, input: normalizeArguments(name, step.input) };
  const asked = await deps.runHooks("PreToolUse", context.place, facts, signal);
  if (asked.continue === false) return { verdict: "stop", text: stopText(asked) };
  const notes = [...asked.contexts];
  if (asked.decision === "deny") return refuse(`A hook denied this call: ${asked.reason ?? "no reason given"}.`, notes);
  const input = normalizeArguments(name, asked.updatedInput ?? step.input);

  const call = await parseCall(permissionTool(tool, isContainedFor(context.turn, context.toolbox)), input);
  const permissions = permissionContext(deps.settings, context, call);
  const before = hookVerdict(asked, call);
  let decided = decidePermission(call, before === undefined ? permissions : { ...permissions, hook: before });
  if (decided.decision === "allow" && asked.decision === "ask" && decided.step === "matrix") {
    decided = {
      ...decided,
      decision: "ask",
      reason: asked.reason ?? "A hook requires approval.",
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
    const hook = hookVerdict(answer, await rewrittenCall(answer, call, context, tool));
    if (hook !== undefined) decided = decidePermission(call, { ...permissions, hook });
  }
  const final = decided.updatedInput === undefined ? input : JSON.stringify(decided.updatedInput);
  const hash = callHash(call.tool.name, final);
  // A denial remains in force, even if rules have allowed the call since.
  const denial = denialOf(step, hash);
  if (denial?.interrupt === true) return { verdict: "interrupt", content: denial.content };
  if (denial !== undefined) return refuse(denial.content, notes);
  if (decided.decision === "allow") return { verdict: "run", input: final, notes };
  if (decided.decision === "deny") return refuse(`Not allowed: ${decided.reason}`, notes);
  const wrong = await argumentErrors(tool.descriptor, final);
  // Nobody is asked to approve a call that cannot run.
  if (wrong !== undefined) return refuse(wrong, notes);
  const tooLong = tooLongToApprove(describeCall(call));
  if (tooLong !== null) return refuse(tooLong, notes);
  return byPerson(deps, context, { step, tool, permissions }, { call, hash, input: final, decided, notes }, signal);
}

function refuse(content: string, notes: string[]): Authorization {
  return { verdict: "refuse", content, notes };
}

interface Asked {
  call: ParsedCall;
  hash: string;
  input: string;
  decided: PermissionDecision;
  notes: string[];
}

/** A person's answer to this exact call, or a new approval request. */
async function byPerson(
  deps: AuthorizationDeps,
  context: AuthorizationContext,
  { step, tool, permissions }: { step: ToolStep; tool: TurnTool; permissions: PermissionContext },
  asked: Asked,
  signal: AbortSignal,
): Promise<Authorization> {
  const { call, hash, input, notes } = asked;
  const { approval } = step;
  if (approval?.callHash === hash && approval.state === "pending")
    return { verdict: "wait", until: approval.expiresAt };
  if (approval?.callHash === hash && approval.state === "allowed") {
    if (isRewrite(call.tool.name, hash, approval.updatedInput)) {
      const { place, toolbox, turn } = context;
      const rewriteDeps = { runHooks: deps.runHooks, place, permissions, contained: isContainedFor(turn, toolbox) };
      const judged = await judgeRewrite(rewriteDeps, step, tool, approval.updatedInput, signal);
      return "notes" in judged ? { ...judged, notes: [...notes, ...judged.notes] } : judged;
    }
    if (approval.always) await allowFromNowOn(deps, context, call, permissions.tainted);
    return { verdict: "run", input, notes };
  }
  const until = await ask(deps, context, step, { ...asked, tainted: permissions.tainted });
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

/** Without characters that are easily confused when read aloud or typed. */
const idLetters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const idLength = 5;

/** The expiry of the request, ISO 8601; null: only an owner could answer, and no owner has an address. */
async function ask(
  deps: AuthorizationDeps,
  context: AuthorizationContext,
  step: ToolStep,
  { call, hash, input, decided, tainted }: Asked & { tainted: boolean },
): Promise<string | null> {
  const { reason } = decided;
  // An approval of a web request covers further requests of this turn to the same host.
  const grants = decided.step === "taint" ? (webTargetOf(call)?.rules ?? []) : [];
  const always = alwaysRules(context.turn, call, tainted);
  const { turn, place, say } = context;
  const expiresInMs = deps.settings.permissions.approval_seconds * 1_000;
  const summary = describeCall(call);
  for (;;) {
    const id = Array.from({ length: idLength }, () => idLetters[randomInt(idLetters.length)]).join("");
    const text = questionText({ id, tool: call.tool.name, summary, reason, expiresInMs, always });
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
          input,
          ...(grants.length === 0 ? {} : { grants }),
          expiresInMs,
          outgoing,
          ...(mine || (turn.root.trust === "owner" && !ownerOnly) ? {} : { toOwner: { text, expiresInMs } }),
          ownerOnly,
        },
        { timeoutMs: deps.storeTimeoutMs },
      );
      if (approval === null) return null;
      deps.log.info(
        { session: place.sessionId, turn: turn.turnId, tool: call.tool.name, approval: approval.id },
        "approval requested",
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
      // Another open question already has this id.
      if (!WireError.is(error, "CONFLICT") || !error.message.includes(id)) throw error;
    }
  }
}

/** Adds the rules for "always" to the session. */
async function allowFromNowOn(
  deps: AuthorizationDeps,
  context: AuthorizationContext,
  call: ParsedCall,
  tainted: boolean,
): Promise<void> {
  const always = alwaysRules(context.turn, call, tainted);
  if (always === null) return;
  const { list, rules } = always;
  const updated = updatePermissions(context.overrides, { type: "add_rules", list, rules }, deps.settings.permissions);
  if ("refused" in updated) return;
  context.overrides[list] = updated.permissions[list];
  await deps.bus.request(
    store.sessionUpdate,
    { sessionId: context.turn.sessionId, overrides: { [list]: updated.permissions[list] ?? null } },
    { timeoutMs: deps.storeTimeoutMs },
  );
}

function permissionContext(
  settings: ParleySettings,
  context: AuthorizationContext,
  call: ParsedCall,
): PermissionContext {
  const { turn, policy, overrides } = context;
  const speaker = principalOf(turn.root.trust);
  const addresses = [turn.replyTo, turn.root.replyTo, ...turn.alsoTo].filter((address) => address !== null);
  const tainted = settings.permissions.taint && isTainted(turn, context.heard);
  return {
    mode: policy.permissionMode,
    allowBypass: settings.permissions.allow_bypass,
    disabled: settings.tools.disabled,
    rules: rulesFor(speaker, settings.permissions, overrides, grantsOf(settings, turn)),
    speaker,
    tainted,
    ...(tainted && reachesWeb(call.tool) ? { given: context.given() } : {}),
    canAsk: turn.root.approvals !== "none",
    ...(roleOf(turn.root.trust) === "guest" ? { guestAllow: guestRules(settings, turn.root) } : {}),
    ownAddresses: addresses.map(formatAddress),
  };
}

/** From the turn at the root of the tree: a sub-agent has no other rights. */
function grantsOf(settings: ParleySettings, { root, granted }: ClaimedTurn): TurnGrants {
  const own = root.webhook === undefined ? [] : (settings.webhooks[root.webhook]?.allow ?? []);
  return {
    ...(root.trust === "webhook" ? { webhook: own } : {}),
    ...(granted === undefined ? {} : { turn: granted }),
  };
}

/** A hook's verdict for the permission engine, which ignores `ask` and no decision. */
function hookVerdict(verdict: Verdict, updated: ParsedCall): HookVerdict | undefined {
  if (verdict.decision !== "allow" && verdict.decision !== "deny") return undefined;
  const reason = verdict.reason ?? `A hook ${verdict.decision === "allow" ? "allows" : "denies"} it.`;
  return { decision: verdict.decision, reason, ...(verdict.updatedInput === null ? {} : { updated }) };
}

async function rewrittenCall(
  verdict: Verdict,
  call: ParsedCall,
  context: AuthorizationContext,
  tool: TurnTool,
): Promise<ParsedCall> {
  if (verdict.updatedInput === null) return call;
  return parseCall(permissionTool(tool, isContainedFor(context.turn, context.toolbox)), verdict.updatedInput);
}
