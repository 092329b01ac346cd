// Hooks of the program that drives a run: registered by `initialize`, called by control requests `hook_callback`.

import { randomUUID } from "node:crypto";

import { errorMessage, toolNamesOf } from "@parley/contracts";
import type { SdkBody } from "@parley/projections";
import { z } from "zod";

import { firstIssue } from "../io/io.ts";
import type { ProgramRequests } from "./program-requests.ts";

const hookEvents = [
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "UserPromptSubmit",
  "SessionStart",
  "Stop",
] as const;
export type HookEvent = (typeof hookEvents)[number];

const Registration = z.record(
  z.string(),
  z.array(
    z.looseObject({
      matcher: z.string().nullish(),
      hookCallbackIds: z.array(z.string()),
      /** Seconds. */
      timeout: z.number().positive().nullish(),
    }),
  ),
);

const Specific = z.looseObject({
  permissionDecision: z.enum(["allow", "deny", "ask", "defer"]).optional(),
  permissionDecisionReason: z.string().optional(),
  updatedInput: z.record(z.string(), z.unknown()).optional(),
  additionalContext: z.string().optional(),
});
const Output = z.looseObject({
  continue: z.boolean().optional(),
  stopReason: z.string().optional(),
  decision: z.enum(["approve", "block"]).optional(),
  reason: z.string().optional(),
  hookSpecificOutput: Specific.optional(),
});

/** What the callbacks of one event returned together: a denial wins over a question, and a question over an approval. */
export interface HookVerdict {
  readonly decision: "allow" | "deny" | "ask" | null;
  readonly reason: string | null;
  readonly updatedInput: Readonly<Record<string, unknown>> | null;
  readonly contexts: readonly string[];
  /** The text with which the program ends the turn. */
  readonly stop: string | null;
}

export const noVerdict: HookVerdict = { decision: null, reason: null, updatedInput: null, contexts: [], stop: null };

const strength = { allow: 1, ask: 2, deny: 3 } as const;

/** Pure. Throws Error for an output that is not valid. */
export function addOutput(verdict: HookVerdict, value: unknown): HookVerdict {
  const parsed = Output.safeParse(value ?? {});
  if (!parsed.success) throw new Error(`the hook's output is not valid: ${firstIssue(parsed.error)}`);
  const { hookSpecificOutput: specific = {}, decision: old, continue: goesOn, stopReason, reason } = parsed.data;
  const said = specific.permissionDecision === "defer" ? undefined : specific.permissionDecision;
  const decision = said ?? (old === "block" ? "deny" : old === "approve" ? "allow" : null);
  const wins = decision !== null && strength[decision] > (verdict.decision === null ? 0 : strength[verdict.decision]);
  const why = specific.permissionDecisionReason ?? reason ?? null;
  return {
    decision: wins ? decision : verdict.decision,
    reason: wins ? why : verdict.reason,
    updatedInput: specific.updatedInput ?? verdict.updatedInput,
    contexts: [...verdict.contexts, ...(specific.additionalContext === undefined ? [] : [specific.additionalContext])],
    stop: goesOn === false ? (stopReason ?? why ?? "A hook of the program ended the turn.") : verdict.stop,
  };
}

interface Callback {
  readonly id: string;
  readonly matcher: string;
  readonly timeoutMs: number;
}

const defaultTimeoutMs = 60_000;

/** The beginning or the end of one call of a hook. */
export type HookReport = Extract<SdkBody, { subtype: "hook_started" | "hook_response" }>;

export class ProgramHooks {
  readonly #requests: ProgramRequests;
  readonly #report: (report: HookReport) => void;
  readonly #callbacks = new Map<HookEvent, Callback[]>();

  /** `report` gets the beginning and the end of each call. */
  constructor(requests: ProgramRequests, report: (report: HookReport) => void = () => undefined) {
    this.#requests = requests;
    this.#report = report;
  }

  /** Throws Error that names a hook event which cannot run here. */
  register(hooks: unknown): void {
    const parsed = Registration.safeParse(hooks);
    if (!parsed.success) throw new Error(`hooks: ${firstIssue(parsed.error)}`);
    const found = new Map<HookEvent, Callback[]>();
    for (const [name, matchers] of Object.entries(parsed.data)) {
      if (matchers.length === 0) continue;
      const event = hookEvents.find((each) => each === name);
      if (event === undefined) {
        throw new Error(`hooks: ${name} cannot be called for a program; supported: ${hookEvents.join(", ")}`);
      }
      const callbacks = matchers.flatMap(({ hookCallbackIds, matcher, timeout }) => {
        const timeoutMs = timeout == null ? defaultTimeoutMs : timeout * 1_000;
        return hookCallbackIds.map((id) => ({ id, matcher: validMatcher(matcher ?? ""), timeoutMs }));
      });
      found.set(event, callbacks);
    }
    this.#callbacks.clear();
    for (const [event, callbacks] of found) this.#callbacks.set(event, callbacks);
  }

  /** `tool`: the own name of a tool; without one, any callback counts. */
  has(event: HookEvent, tool?: string): boolean {
    return this.#matching(event, tool).length > 0;
  }

  /** Calls the callbacks of an event one after another. Rejects when one fails, returns nonsense or gives no answer in time. */
  async call(event: HookEvent, input: Readonly<Record<string, unknown>>, tool?: string, callId?: string) {
    let verdict = noVerdict;
    for (const { id, timeoutMs } of this.#matching(event, tool)) {
      const body = { ...input, hook_event_name: event };
      const about = {
        hook_id: randomUUID(),
        hook_name: tool === undefined ? event : `${event}:${tool}`,
        hook_event: event,
      };
      this.#report({ type: "system", subtype: "hook_started", ...about });
      const ended = (outcome: "success" | "error", output: string): void =>
        this.#report({ type: "system", subtype: "hook_response", ...about, output, stdout: "", stderr: "", outcome });
      try {
        const request = { subtype: "hook_callback", callback_id: id, input: body, tool_use_id: callId };
        const output = await this.#requests.ask(request, { timeoutMs });
        verdict = addOutput(verdict, output);
        ended("success", JSON.stringify(output ?? {}));
      } catch (error) {
        ended("error", errorMessage(error));
        throw error;
      }
    }
    return verdict;
  }

  #matching(event: HookEvent, tool: string | undefined): Callback[] {
    const callbacks = this.#callbacks.get(event) ?? [];
    return tool === undefined ? callbacks : callbacks.filter(({ matcher }) => matchesTool(matcher, tool));
  }
}

/** Throws Error for a matcher that is not a regular expression. */
function validMatcher(matcher: string): string {
  if (matcher === "" || matcher === "*") return "";
  try {
    return new RegExp(`^(?:${matcher})$`).source;
  } catch {
    throw new Error(`hooks: the matcher "${matcher}" is not a regular expression`);
  }
}

/** A matcher matches the own name or any alias of the tool. */
function matchesTool(matcher: string, tool: string): boolean {
  return matcher === "" || toolNamesOf(tool).some((name) => new RegExp(matcher).test(name));
}
