// Hooks of the program that drives a run: registered by `initialize`, called by control requests `hook_callback`.

import { randomUUID } from "node:crypto";

import { errorMessage, toolNamesOf } from "@parley/contracts";
import type { SdkBody } from "@parley/projections";
import { z } from "zod";

import { firstIssue } from "../io/io.ts";
import { fieldsWithoutEffect, type HookEvent, isToolEvent, readHookEvent } from "./hook-events.ts";
import type { ProgramRequests } from "./program-requests.ts";

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
  /** Of PermissionRequest, in the form of an answer of the permission callback. */
  decision: z.looseObject({ behavior: z.enum(["allow", "deny"]), message: z.string().optional() }).optional(),
});
const Output = z.looseObject({
  continue: z.boolean().optional(),
  stopReason: z.string().optional(),
  decision: z.enum(["approve", "block"]).optional(),
  reason: z.string().optional(),
  systemMessage: z.string().optional(),
  hookSpecificOutput: Specific.optional(),
});

/** What the callbacks of one event returned together: a denial wins over a question, and a question over an approval. */
export interface HookVerdict {
  readonly decision: "allow" | "deny" | "ask" | null;
  readonly reason: string | null;
  readonly updatedInput: Readonly<Record<string, unknown>> | null;
  /** The answer of a PermissionRequest hook, as the program returned it. */
  readonly answer: unknown;
  readonly contexts: readonly string[];
  /** The text with which the program ends the turn. */
  readonly stop: string | null;
}

export const noVerdict: HookVerdict = {
  decision: null,
  reason: null,
  updatedInput: null,
  answer: null,
  contexts: [],
  stop: null,
};

const strength = { allow: 1, ask: 2, deny: 3 } as const;

/** Throws Error for an output that is not valid. */
export function readOutput(value: unknown): z.output<typeof Output> {
  const parsed = Output.safeParse(value ?? {});
  if (!parsed.success) throw new Error(`the hook's output is not valid: ${firstIssue(parsed.error)}`);
  return parsed.data;
}

/** Pure. */
export function addOutput(verdict: HookVerdict, output: z.output<typeof Output>): HookVerdict {
  const { hookSpecificOutput: specific = {}, decision: old, continue: goesOn, stopReason, reason } = output;
  const explicit = specific.permissionDecision === "defer" ? undefined : specific.permissionDecision;
  const decision =
    explicit ?? specific.decision?.behavior ?? (old === "block" ? "deny" : old === "approve" ? "allow" : null);
  const wins = decision !== null && strength[decision] > (verdict.decision === null ? 0 : strength[verdict.decision]);
  const why = specific.permissionDecisionReason ?? specific.decision?.message ?? reason ?? null;
  return {
    decision: wins ? decision : verdict.decision,
    reason: wins ? why : verdict.reason,
    updatedInput: specific.updatedInput ?? verdict.updatedInput,
    answer: wins ? (specific.decision ?? null) : verdict.answer,
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

export interface ProgramHooksDeps {
  readonly requests: ProgramRequests;
  readonly note: (text: string) => void;
  /** Gets the beginning and the end of each call. */
  readonly report?: ((report: HookReport) => void) | undefined;
}

export class ProgramHooks {
  readonly #deps: ProgramHooksDeps;
  readonly #callbacks = new Map<HookEvent, Callback[]>();

  constructor(deps: ProgramHooksDeps) {
    this.#deps = deps;
  }

  /** Throws Error that names a hook event which cannot run here. */
  register(hooks: unknown): void {
    const parsed = Registration.safeParse(hooks);
    if (!parsed.success) throw new Error(`hooks: ${firstIssue(parsed.error)}`);
    const found = new Map<HookEvent, Callback[]>();
    for (const [name, matchers] of Object.entries(parsed.data)) {
      if (matchers.length === 0) continue;
      const event = readHookEvent(name);
      const callbacks = matchers.flatMap(({ hookCallbackIds, matcher, timeout }) => {
        const timeoutMs = timeout == null ? defaultTimeoutMs : timeout * 1_000;
        return hookCallbackIds.map((id) => ({ id, matcher: validMatcher(matcher ?? ""), timeoutMs }));
      });
      found.set(event, callbacks);
    }
    this.#callbacks.clear();
    for (const [event, callbacks] of found) this.#callbacks.set(event, callbacks);
  }

  /** `subject`: what a matcher matches, such as the own name of a tool; without one, any callback counts. */
  has(event: HookEvent, subject?: string): boolean {
    return this.#matching(event, subject).length > 0;
  }

  /** Calls the callbacks of an event one after another. Rejects when one fails, returns nonsense or gives no answer in time. */
  async call(event: HookEvent, input: Readonly<Record<string, unknown>>, subject?: string, callId?: string) {
    const { requests, note, report = () => undefined } = this.#deps;
    let verdict = noVerdict;
    for (const { id, timeoutMs } of this.#matching(event, subject)) {
      const about = {
        hook_id: randomUUID(),
        hook_name: subject === undefined ? event : `${event}:${subject}`,
        hook_event: event,
      };
      report({ type: "system", subtype: "hook_started", ...about });
      const ended = (outcome: "success" | "error", output: string): void =>
        report({ type: "system", subtype: "hook_response", ...about, output, stdout: "", stderr: "", outcome });
      try {
        const answer = await requests.ask(requestOf(event, id, input, callId), { timeoutMs });
        const output = readOutput(answer);
        verdict = addOutput(verdict, output);
        if (output.systemMessage !== undefined) note(`${event} hook: ${output.systemMessage}`);
        const ignored = fieldsWithoutEffect(event, output.hookSpecificOutput ?? {});
        if (ignored.length > 0) note(`${event} hook: ${ignored.join(", ")} has no effect here`);
        ended("success", JSON.stringify(answer ?? {}));
      } catch (error) {
        ended("error", errorMessage(error));
        throw error;
      }
    }
    return verdict;
  }

  /** Calls the callbacks of an event without waiting for an answer. */
  announce(event: HookEvent, input: Readonly<Record<string, unknown>>, subject: string): void {
    for (const { id } of this.#matching(event, subject)) {
      this.#deps.requests.announce(requestOf(event, id, input, undefined));
    }
  }

  #matching(event: HookEvent, subject: string | undefined): Callback[] {
    const callbacks = this.#callbacks.get(event) ?? [];
    if (subject === undefined) return callbacks;
    const names = isToolEvent(event) ? toolNamesOf(subject) : [subject];
    return callbacks.filter(({ matcher }) => matcher === "" || names.some((name) => new RegExp(matcher).test(name)));
  }
}

function requestOf(event: HookEvent, id: string, input: object, callId: string | undefined) {
  const body = { ...input, hook_event_name: event };
  return { subtype: "hook_callback", callback_id: id, input: body, tool_use_id: callId };
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
