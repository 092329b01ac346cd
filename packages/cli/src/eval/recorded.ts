// Turns that have run before, as the store has them.

import { type Message, ownToolName, textOf } from "@parley/contracts";

import type { AttachmentRef } from "../chat/connection.ts";
import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { CliError } from "../io/io.ts";
import type { TurnRecord } from "./graders.ts";

export interface RecordedTurn {
  readonly record: TurnRecord;
  readonly sessionId: string;
  /** What the person sent; files by their hash. */
  readonly prompt: { readonly text: string; readonly attachments: readonly AttachmentRef[] };
  /** The position of its first message in the session's log. */
  readonly seq: number;
}

const pageSize = 200;

/** Throws CliError for a turn that does not exist, is running, or that no person started. */
export async function recordedTurn(gateway: Gateway, turnId: string): Promise<RecordedTurn> {
  const { turn } = await gateway.run(api.turn, { id: turnId });
  if (turn.state === "running") throw new CliError(`The turn ${turnId} is still running.`);
  const messages = await messagesOf(gateway, turn.sessionId, turnId);
  const [first] = messages;
  const userParts = messages
    .filter(({ role, from }) => role === "user" && from?.origin === "user")
    .flatMap(({ parts }) => parts);
  if (first === undefined || userParts.length === 0)
    throw new CliError(`The turn ${turnId} was not started by a message.`);
  const tools = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_call" ? [ownToolName(part.name)] : [])),
  );
  const { usage, cost, startedAt, finishedAt } = turn;
  const record: TurnRecord = {
    turnId,
    answered: turn.exitReason === "end_turn",
    text: turn.text ?? "",
    tools,
    costUsd: cost.unpricedCalls > 0 ? null : cost.micros / 1_000_000,
    seconds: finishedAt === null ? 0 : (Date.parse(finishedAt) - Date.parse(startedAt)) / 1_000,
    modelCalls: turn.modelSteps,
    inputTokens: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
    outputTokens: usage.outputTokens,
  };
  const attachments = userParts.flatMap((part) => (part.type === "blob" ? [{ id: part.sha256, name: part.name }] : []));
  return { record, sessionId: turn.sessionId, prompt: { text: textOf(userParts), attachments }, seq: first.seq };
}

async function messagesOf(gateway: Gateway, sessionId: string, turnId: string): Promise<Message[]> {
  const found: Message[] = [];
  for (let after = 0; ;) {
    const { messages, more } = await gateway.run(api.messages, { id: sessionId, after, limit: pageSize });
    found.push(...messages.filter((message) => message.turnId === turnId));
    after = messages.at(-1)?.seq ?? after;
    const isPast = found.length > 0 && messages.at(-1)?.turnId !== turnId;
    if (!more || isPast || messages.length === 0) return found;
  }
}
