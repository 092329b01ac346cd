// Control requests over a WebSocket. Each is executed or refused with a reason; an unknown one gets an error response.
import { efforts, permissionModes, queueModes, store } from "@parley/contracts";
import { z } from "zod";
import { ownerInput } from "../owner-input.ts";
import { approvedBy, readAdditions } from "../approvals.ts";
import { rewind, RewindBody } from "../checkpoints.ts";
import type { HttpDeps } from "../deps.ts";
import { HttpError, invalid } from "../errors.ts";
import { defaultConversation } from "../openai-format.ts";
import { requireSession } from "../sessions.ts";

const decision = { approval_id: z.string().regex(/^[A-Za-z0-9]{4,12}$/, "is not a valid approval id") };

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
  z.strictObject({
    subtype: z.literal("approve"),
    ...decision,
    always: z.boolean().default(false),
    updated_input: z.record(z.string(), z.unknown()).optional(),
  }),
  z.strictObject({
    subtype: z.literal("deny"),
    ...decision,
    message: z.string().min(1).max(4_000).optional(),
    interrupt: z.boolean().optional(),
  }),
  /** The answer to a question of the agent is sent as a message. */
  z.strictObject({
    subtype: z.literal("answer"),
    text: z.string().min(1),
    conversation: z.string().min(1).max(512).default(defaultConversation),
  }),
  z.strictObject({ subtype: z.literal("compact"), instructions: z.string().min(1).max(4_000).optional() }),
  RewindBody.extend({ subtype: z.literal("rewind_files") }),
]);

const known = ControlRequest.options.map(({ shape }) => shape.subtype.value);

export interface ControlFrame {
  request_id: string;
  session: string;
  request: Record<string, unknown>;
}

/** Executes a control request and returns the response. Throws HttpError with the reason of a refusal. */
export async function control(deps: HttpDeps, frame: ControlFrame): Promise<object> {
  const { inbound, bus } = deps;
  const { subtype } = frame.request;
  if (!known.some((each) => each === subtype)) {
    const name = typeof subtype === "string" ? `"${subtype.slice(0, 64)}"` : "without a subtype";
    throw new HttpError(400, "unknown_request", `unknown control request ${name}; supported: ${known.join(", ")}`);
  }
  const parsed = ControlRequest.safeParse(frame.request);
  if (!parsed.success) throw invalid(parsed.error, "request");
  const request = parsed.data;
  const ref = `control:${frame.session}:${frame.request_id}`;
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
    case "approve":
    case "deny": {
      const allow = request.subtype === "approve";
      const id = request.approval_id.toUpperCase();
      const always = request.subtype === "approve" && request.always;
      const additions =
        request.subtype === "approve"
          ? readAdditions(true, always, { updatedInput: request.updated_input })
          : readAdditions(false, false, { message: request.message, interrupt: request.interrupt });
      const decided = await bus.request(store.approvalDecide, { id, allow, always, by: approvedBy, ...additions });
      if (decided.outcome === "not_found") throw new HttpError(404, "not_found", `there is no approval ${id}`);
      if (decided.outcome === "expired") throw new HttpError(409, "expired", `the approval ${id} has expired`);
      return decided;
    }
    case "compact":
      return inbound.acts.compact(await session(), request.instructions);
    default:
      return rewind(deps, await session(), request, ref);
  }
}
