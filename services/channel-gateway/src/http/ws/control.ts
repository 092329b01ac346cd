// Control requests over a WebSocket. Each is executed or refused with a reason; an unknown one gets an error response.
import { efforts, permissionModes, queueModes } from "@parley/contracts";
import { z } from "zod";
import { callOperation, operations } from "../../operations/registry.ts";
import { ownerCaller, ownerInput } from "../owner-input.ts";
import { rewind, RewindBody } from "../checkpoints.ts";
import type { HttpDeps } from "../deps.ts";
import { HttpError, invalid } from "../errors.ts";
import { defaultConversation } from "../openai-format.ts";
import { requireSession } from "../sessions.ts";

const ControlRequest = z.discriminatedUnion("subtype", [
  /** Stops the running turn. `queued`: also cancels queued messages. `all`: also stops background sub-agents. */
  z.strictObject({
    subtype: z.literal("interrupt"),
    turn_id: z.uuid().optional(),
    queued: z.boolean().default(false),
    all: z.boolean().default(false),
  }),
  z.strictObject({
    subtype: z.literal("send_user_message"),
    text: z.string().min(1),
    conversation: z.string().min(1).max(512).default(defaultConversation),
    mode: z.enum(queueModes).optional(),
  }),
  /** Null removes the override. */
  z.strictObject({ subtype: z.literal("set_model"), model: z.string().min(1).max(200).nullable() }),
  z.strictObject({ subtype: z.literal("set_permission_mode"), mode: z.enum(permissionModes).nullable() }),
  z.strictObject({ subtype: z.literal("set_effort"), effort: z.enum(efforts).nullable() }),
  /** The answer to a question of the agent is sent as a message. */
  z.strictObject({
    subtype: z.literal("answer"),
    text: z.string().min(1),
    conversation: z.string().min(1).max(512).default(defaultConversation),
  }),
  z.strictObject({ subtype: z.literal("compact"), instructions: z.string().min(1).max(4_000).optional() }),
  RewindBody.extend({ subtype: z.literal("rewind_files") }),
]);

const handWritten = ControlRequest.options.map(({ shape }) => shape.subtype.value);

/** Control requests that are projections of operations. */
const projected = operations.flatMap((operation) =>
  (operation.definition.ws ?? []).map((projection) => ({ operation, projection })),
);
const known = [...handWritten, ...projected.map(({ projection }) => projection.subtype)];

export interface ControlFrame {
  request_id: string;
  session: string;
  request: Record<string, unknown>;
}

/** Executes a control request and returns the response. Throws HttpError with the reason of a refusal. */
export async function control(deps: HttpDeps, frame: ControlFrame): Promise<object> {
  const { inbound } = deps;
  const { subtype } = frame.request;
  if (!known.some((each) => each === subtype)) {
    const name = typeof subtype === "string" ? `"${subtype.slice(0, 64)}"` : "without a subtype";
    throw new HttpError(400, "unknown_request", `unknown control request ${name}; supported: ${known.join(", ")}`);
  }
  const ref = `control:${frame.session}:${frame.request_id}`;
  const found = projected.find(({ projection }) => projection.subtype === subtype);
  if (found !== undefined) {
    const { subtype: _, ...fields } = frame.request;
    const input = found.projection.input.safeParse(fields);
    if (!input.success) throw invalid(input.error, "request");
    const { session: field } = found.operation.definition;
    const target = field === undefined ? {} : { [field]: frame.session };
    const caller = ownerCaller("API", ref);
    const output = await callOperation(inbound.operations, found.operation, { ...input.data, ...target }, caller);
    return chosen(output, found.projection.output);
  }
  const parsed = ControlRequest.safeParse(frame.request);
  if (!parsed.success) throw invalid(parsed.error, "request");
  const request = parsed.data;
  const session = async () => (await requireSession(deps, frame.session)).sessionId;
  switch (request.subtype) {
    case "interrupt": {
      const { turn_id: turnId, queued, all: background } = request;
      const what = { sessionId: await session(), queued, background };
      const stopped = await inbound.cancel(turnId === undefined ? what : { ...what, turnId });
      return { turns: stopped.turns, cancelledQueued: stopped.cancelledQueued };
    }
    case "send_user_message":
    case "answer": {
      const input = ownerInput(request.conversation, request.text, frame.request_id);
      const mode = request.subtype === "answer" ? "steer" : request.mode;
      const { inboxId, sessionId, duplicate } = await inbound.store({ ...input, mode });
      return { messageId: inboxId, sessionId, duplicate };
    }
    case "set_model":
      return { session: await inbound.acts.override(await session(), { model: request.model }) };
    case "set_permission_mode":
      return { session: await inbound.acts.override(await session(), { permissionMode: request.mode }) };
    case "set_effort":
      return { session: await inbound.acts.override(await session(), { effort: request.effort }) };
    case "compact":
      return inbound.acts.compact(await session(), request.instructions);
    default:
      return rewind(deps, await session(), request, ref);
  }
}

/** The fields of an output that a response has. */
function chosen(output: unknown, fields: readonly string[] | undefined): object {
  const all = Object.entries(output ?? {});
  return Object.fromEntries(fields === undefined ? all : all.filter(([name]) => fields.includes(name)));
}
