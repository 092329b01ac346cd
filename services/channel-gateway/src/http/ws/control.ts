// Control requests over a WebSocket: projections of operations, and the two that are messages. An unknown one gets an error response.
import { queueModes, type ControlProjection } from "@parley/contracts";
import { z } from "zod";
import type { ApiAccess, Operation } from "../../operations/operation.ts";
import { callOperation, operations } from "../../operations/registry.ts";
import type { HttpDeps } from "../deps.ts";
import { HttpError, invalid } from "../errors.ts";
import { defaultConversation } from "../openai-format.ts";
import { chosen } from "../operations.ts";
import { ownerCaller, ownerInput } from "../owner-input.ts";

const conversation = z.string().min(1).max(512).default(defaultConversation);

const MessageRequest = z.discriminatedUnion("subtype", [
  z.strictObject({
    subtype: z.literal("send_user_message"),
    text: z.string().min(1),
    conversation,
    mode: z.enum(queueModes).optional(),
  }),
  /** The answer to a question of the agent is sent as a message. */
  z.strictObject({ subtype: z.literal("answer"), text: z.string().min(1), conversation }),
]);

const messages: readonly string[] = MessageRequest.options.map(({ shape }) => shape.subtype.value);

const projected = new Map<unknown, { operation: Operation; projection: ControlProjection }>(
  operations.flatMap((operation) =>
    (operation.definition.ws ?? []).map((projection) => [projection.subtype, { operation, projection }] as const),
  ),
);

export interface ControlFrame {
  request_id: string;
  session: string;
  request: Record<string, unknown>;
}

/** Executes a control request and returns the response. Throws the reason of a refusal, as `toHttpError` takes it. */
export async function control(deps: HttpDeps, access: ApiAccess, frame: ControlFrame): Promise<object> {
  const { subtype, ...fields } = frame.request;
  const found = projected.get(subtype);
  if (found === undefined) return message(deps, access, frame);
  const { operation, projection } = found;
  const input = projection.input.safeParse(fields);
  if (!input.success) throw invalid(input.error, "request");
  const { session } = operation.definition;
  const target = session === undefined ? {} : { [session]: frame.session };
  const caller = ownerCaller(access, "API", `control:${frame.session}:${frame.request_id}`);
  const output = await callOperation(deps.inbound.operations, operation, { ...input.data, ...target }, caller);
  return chosen(output, projection.output);
}

async function message(
  { inbound }: HttpDeps,
  access: ApiAccess,
  { request_id: id, request }: ControlFrame,
): Promise<object> {
  const { subtype } = request;
  if (typeof subtype !== "string" || !messages.includes(subtype)) {
    const name = typeof subtype === "string" ? `"${subtype.slice(0, 64)}"` : "without a subtype";
    const known = [...projected.keys(), ...messages].join(", ");
    throw new HttpError(400, "unknown_request", `unknown control request ${name}; supported: ${known}`);
  }
  const parsed = MessageRequest.safeParse(request);
  if (!parsed.success) throw invalid(parsed.error, "request");
  const input = ownerInput(access, parsed.data.conversation, parsed.data.text, id);
  const mode = parsed.data.subtype === "answer" ? "steer" : parsed.data.mode;
  const { inboxId, sessionId, duplicate } = await inbound.store({ ...input, mode });
  return { messageId: inboxId, sessionId, duplicate };
}
