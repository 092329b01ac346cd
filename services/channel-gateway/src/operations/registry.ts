// All operations, and their execution: access check, parsed input, answer, and the text for errors.
import { includesScope, newId, promptCommand, slashCommands, store, WireError, type ApiScope } from "@parley/contracts";
import { accessRefusal } from "./access.ts";
import { approvalOperations } from "./approvals.ts";
import { channelOperations } from "./channels.ts";
import { checkpointOperations } from "./checkpoints.ts";
import { clusterOperations } from "./cluster.ts";
import { conversationOperations } from "./conversation.ts";
import { documentOperations } from "./documents.ts";
import { mcpOperations, parsePrompt } from "./mcp.ts";
import {
  hasRole,
  InvalidInputError,
  nameOf,
  OperationCall,
  OperationError,
  UsageError,
  type Operation,
  type ApiAccess,
  type OperationDeps,
  type Speaker,
} from "./operation.ts";
import type { CommandLine } from "./parse-input.ts";
import { peopleOperations } from "./people.ts";
import { programCallOperations } from "./program-calls.ts";
import { questionOperations } from "./questions.ts";
import { queueOperations } from "./queue.ts";
import { rulesOperations } from "./rules.ts";
import { scheduleOperations } from "./schedules.ts";
import { ServiceUnavailableError } from "./session-service.ts";
import { sessionOperations } from "./sessions.ts";
import { skillOperations } from "./skills.ts";
import { tokenOperations } from "./tokens.ts";
import { findForm, slashForms, slashInput, unknownText, wordsIn } from "./slash.ts";
import { voiceOperations } from "./voice.ts";
import { workOperations } from "./work.ts";

/** Every operation, each once. */
export const operations: readonly Operation[] = [
  ...approvalOperations,
  ...channelOperations,
  ...checkpointOperations,
  ...clusterOperations,
  ...conversationOperations,
  ...documentOperations,
  ...mcpOperations,
  ...peopleOperations,
  ...programCallOperations,
  ...questionOperations,
  ...queueOperations,
  ...rulesOperations,
  ...scheduleOperations,
  ...sessionOperations,
  ...skillOperations,
  ...tokenOperations,
  ...voiceOperations,
  ...workOperations,
];

const forms = slashForms(operations);

/** Parses the input and runs an operation. Throws InvalidInputError, OperationError, WireError or ServiceUnavailableError. */
export async function callOperation(
  deps: OperationDeps,
  operation: Operation,
  input: unknown,
  caller: { speaker: Speaker; by: string },
): Promise<unknown> {
  const { name, role } = operation.definition;
  if (!hasRole(caller.speaker.role, role)) throw new OperationError("forbidden", `${name} requires the role ${role}`);
  return runRecorded(operation, parsed(operation, input), new OperationCall(deps, caller.speaker, caller.by));
}

/** Checks the scope of a token and records the call in the audit log before it runs: what cannot be recorded does not happen. */
async function runRecorded(operation: Operation, input: unknown, call: OperationCall): Promise<unknown> {
  const { definition } = operation;
  requireScope(call.speaker.access, operation.scope, definition.name);
  const target = auditTarget(definition.audit, input);
  if (target === undefined) return operation.run(input, call);
  const entry = { actor: call.actor, action: definition.name, target };
  const { bus } = call.deps;
  await bus.request(store.auditAppend, { opId: newId(), ...entry, outcome: "requested" });
  try {
    return await operation.run(input, call);
  } catch (error) {
    // The reason of the failure is for the caller: an entry that is missing here does not hide an effect.
    await bus.request(store.auditAppend, { opId: newId(), ...entry, outcome: "failed" }).catch(() => undefined);
    throw error;
  }
}

/** Throws OperationError when a token lacks the scope. */
export function requireScope(access: ApiAccess | undefined, wanted: ApiScope, what: string): void {
  if (access === undefined || includesScope(access.scopes, wanted)) return;
  throw new OperationError("forbidden", missingScope(what, wanted));
}

export function missingScope(what: string, wanted: ApiScope): string {
  return `${what} requires the scope "${wanted}", which this token does not have`;
}

function auditTarget(fields: readonly string[] | undefined, input: unknown): Record<string, unknown> | undefined {
  const given = Object.entries(typeof input === "object" && input !== null ? input : {});
  const recorded = given.filter(([name, value]) => value !== undefined && fields?.includes(name));
  return recorded.some(([name]) => name === fields?.at(-1)) ? Object.fromEntries(recorded) : undefined;
}

function parsed({ definition }: Operation, input: unknown): unknown {
  const result = definition.input.safeParse(input);
  if (!result.success) throw new InvalidInputError(result.error);
  return result.data;
}

/** Executes a slash command and returns the answer. Rejects when the store is unavailable; the command may then be repeated. */
export async function runCommand(deps: OperationDeps, { name, rest }: CommandLine, speaker: Speaker): Promise<string> {
  const words = wordsIn(name, rest);
  const prompt = parsePrompt(name);
  const found = findForm(forms, prompt === undefined ? name : promptCommand, words);
  if (found === undefined) return unknownText(name);
  const refused = accessRefusal(name, words, speaker);
  if (refused !== undefined) return refused;
  const { keepsWindow = false, usage = name } = slashCommands.find((each) => each.name === name) ?? {};
  // In a group the window also holds messages of other people, so a guest does not end it.
  const mayFlush = speaker.direct || speaker.role !== "guest";
  if (!keepsWindow && mayFlush) await flushWindow(deps, speaker.route);
  try {
    const { operation } = found;
    const input = parsed(operation, {
      ...slashInput(found, rest, speaker),
      ...(prompt === undefined ? {} : { command: name }),
    });
    const call = new OperationCall(deps, speaker, nameOf(speaker));
    return await operation.text(await runRecorded(operation, input, call), call, input);
  } catch (error) {
    if (error instanceof UsageError) return `${error.message}\nUsage: ${usage}`;
    if (error instanceof InvalidInputError) return `${invalidText(error)}\nUsage: ${usage}`;
    return commandFailure(error);
  }
}

/** The text for the sender of a command that failed. Throws the error when it is transient and the command may be repeated. */
export function commandFailure(error: unknown): string {
  if (error instanceof OperationError) return sentence(error.message);
  const failure = failureText(error);
  if (failure === undefined) throw error;
  return failure;
}

function invalidText({ issues }: InvalidInputError): string {
  const issue = issues.issues[0];
  const message = issue?.code === "invalid_type" ? `must be a ${issue.expected}` : issue?.message;
  return sentence(`${issue?.path.join(".") ?? "the input"}: ${message ?? "invalid"}`);
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** A command shows that its sender has finished writing, so the coalescing window ends. */
async function flushWindow({ bus, sessions, settings }: OperationDeps, route: string): Promise<void> {
  const mode = (await sessions.queueModeOf(route)) ?? settings.queue.mode;
  if (mode !== "coalesce") return;
  const session = await sessions.find(route);
  if (session !== null) await bus.request(store.inboxFlush, { sessionId: session.sessionId });
}

/** Returns the text for the sender, or undefined when the error is transient and the caller should retry. */
function failureText(error: unknown): string | undefined {
  if (
    !(error instanceof ServiceUnavailableError) &&
    !WireError.is(error, "INVALID_INPUT", "NOT_FOUND", "CONFLICT", "TOO_LARGE")
  ) {
    return undefined;
  }
  return `Command failed: ${error.message}.`;
}
