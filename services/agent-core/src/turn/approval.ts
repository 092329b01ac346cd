// A person's approval of one exact tool call: the durable question, and what its answer means for the call.
import { randomInt } from "node:crypto";
import {
  contactRoles,
  reviewReason,
  store,
  WireError,
  type ClaimedTurn,
  type DurableEvent,
  type LiveEvent,
  type Outgoing,
  type SessionOverrides,
  type StoredAuthorization,
  type ToolStep,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { describeCall, questionText } from "../policy/describe.ts";
import type { TurnDeps } from "./dependencies.ts";
import { callHash, type ParsedCall } from "../policy/parsed-call.ts";
import type { PermissionDecision } from "../policy/decide.ts";
import type { AlwaysRules } from "../policy/session-rules.ts";
import { webTargetOf } from "../policy/web-access.ts";
import { normalizeArguments } from "../tools/normalize-arguments.ts";

export type ApprovalDeps = Pick<TurnDeps, "leaderStore" | "log" | "settings">;

export interface ApprovalContext {
  turn: ClaimedTurn;
  /** Of the session; "always" adds rules to them. */
  overrides: SessionOverrides;
  publish: (event: DurableEvent | LiveEvent) => void;
}

export type StoredApproval = NonNullable<ToolStep["approval"]>;

/** A denial, as text for the model; `interrupt`: the turn ends with it. */
interface Denial {
  content: string;
  interrupt: boolean;
}

/** Denied by a person or by timeout. */
type DeniedApproval = StoredApproval & { state: "denied" | "expired" };

export function isDenied(approval: StoredApproval): approval is DeniedApproval {
  return approval.state === "denied" || approval.state === "expired";
}

export function denialOf(approval: DeniedApproval): Denial {
  if (approval.state === "expired") return { content: "Not run: the approval request timed out.", interrupt: false };
  const by = approval.decidedBy ?? "a person";
  const why = approval.message === undefined ? "." : `: ${approval.message}`;
  return { content: `Not run: denied by ${by}${why}`, interrupt: approval.interrupt === true };
}

/** Whether the person approved the call with other arguments; key order is ignored. */
export function isRewritten(
  tool: string,
  approval: StoredApproval,
): approval is StoredApproval & { updatedInput: string } {
  const { updatedInput, callHash: hash } = approval;
  return updatedInput !== undefined && callHash(tool, normalizeArguments(tool, updatedInput)) !== hash;
}

/**
 * Only an owner can answer, at another address than the one this turn's root replies to. True of synchronous API calls
 * and of all input that no person sent.
 */
function isOwnerOnly({ root }: ClaimedTurn): boolean {
  return root.approvals === "owner" || !contactRoles.some((role) => role === root.trust);
}

/** Asks the program that sent the message, and reviews each call of its turn and of its sub-agents, about a call that the rules allow. */
export function withReview({ root }: ClaimedTurn, decided: PermissionDecision): PermissionDecision {
  if (decided.decision !== "allow" || root.approvals !== "sender_each_call") return decided;
  return { ...decided, decision: "ask", reason: reviewReason };
}

/** Without characters that are easily confused when read aloud or typed. */
const idLetters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const idLength = 5;

interface Question {
  step: ToolStep;
  call: ParsedCall;
  hash: string;
  decided: PermissionDecision;
  authorization: StoredAuthorization;
}

/** Stores the question. Its expiry, ISO 8601; null: only an owner could answer, and no owner has an address. */
export async function requestApproval(
  deps: ApprovalDeps,
  { turn, publish }: ApprovalContext,
  { step, call, hash, decided, authorization }: Question,
): Promise<string | null> {
  const { reason } = decided;
  const { input, always } = authorization;
  // An approval of a web request covers further requests of this turn to the same host.
  const grants = decided.step === "taint" ? (webTargetOf(call)?.rules ?? []) : [];
  const expiresInMs = deps.settings.permissions.approval_seconds * 1_000;
  const summary = describeCall(call);
  const address = turn.root.replyTo;
  const asksHere = address !== null && turn.root.trust === "owner";
  const ownerOnly = isOwnerOnly(turn);
  for (;;) {
    const id = Array.from({ length: idLength }, () => idLetters[randomInt(idLetters.length)]).join("");
    const text = questionText({ id, tool: call.tool.name, summary, reason, expiresInMs, always });
    const question = { text, actions: actionsOf(id, always !== null), expiresInMs };
    const outgoing: Outgoing[] = asksHere ? [{ address, ...question }] : [];
    try {
      const { approval, seq } = await deps.leaderStore.request(store.approvalRequest, {
        turnId: turn.turnId,
        n: step.n,
        id,
        tool: call.tool.name,
        callHash: hash,
        summary,
        reason,
        input,
        ...(grants.length === 0 ? {} : { grants }),
        authorization,
        expiresInMs,
        outgoing,
        ...(asksHere || (turn.root.trust === "owner" && !ownerOnly) ? {} : { toOwner: question }),
        ownerOnly,
      });
      if (approval === null) return null;
      const { sessionId, turnId } = turn;
      deps.log.info({ sessionId, turnId, tool: call.tool.name, approvalId: approval.id }, "approval requested");
      if (seq !== null) {
        const { id: approvalId, tool, expiresAt, mayAlways } = approval;
        const about = { approvalId, callId: step.callId, tool, summary: approval.summary, reason: approval.reason };
        publish({
          type: "approval.requested",
          seq,
          turnId,
          ...about,
          expiresAt,
          input,
          ...omitUndefined({ mayAlways }),
        });
      }
      return approval.expiresAt;
    } catch (error) {
      // Another open question already has this id.
      if (!WireError.is(error, "CONFLICT") || !error.message.includes(id)) throw error;
    }
  }
}

/** The answers as buttons; a press counts as its command. */
function actionsOf(id: string, mayAlways: boolean): store.Action[] {
  return [
    { label: "Approve", input: `/approve ${id}` },
    ...(mayAlways ? [{ label: "Always approve", input: `/approve ${id} always` }] : []),
    { label: "Deny", input: `/deny ${id}` },
  ];
}

/** Adds the rules for "always" to the session. */
export async function addAlwaysRules(
  deps: ApprovalDeps,
  { turn, overrides }: ApprovalContext,
  { list, rules }: AlwaysRules,
): Promise<void> {
  overrides[list] = [...new Set([...(overrides[list] ?? []), ...rules])];
  const { sessionId } = turn;
  await deps.leaderStore.request(store.sessionUpdate, { sessionId, rules: { list, action: "add", rules } });
}
