// OpenAI's Responses API: create a response, complete or streamed, continue it, and read it again.
import { mainSessionKey, noUsage, store } from "@parley/contracts";
import { AnswerText } from "@parley/projections";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { AuthorizedInput } from "../ingress/authorized-input.ts";
import { parseInput } from "../operations/parse-input.ts";
import { agentInput, bodyLimitFor } from "./openai-input.ts";
import { accessOf } from "./api-access.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError, toHttpError } from "./errors.ts";
import { modelId } from "./openai-format.ts";
import { beginsSession, refuseFailed } from "./openai.ts";
import { callInput } from "./owner-input.ts";
import {
  inboxIdOf,
  readResponseRequest,
  ResponseBody,
  ResponseEvents,
  responseObject,
  type ResponseIdentity,
  type ResponseRequest,
} from "./responses-format.ts";
import { SseWriter } from "./sse.ts";

const ownPrefix = "http:default:";
/** Messages per page when the place of a response in its session is searched. */
const pageSize = 200;

export function responseRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "POST",
      url: "/v1/responses",
      scope: "talk",
      summary: "Send a message and get the answer in the format of OpenAI's Responses API",
      description:
        "Each request gets its own turn. `previous_response_id` continues the session of that response; if the session has gone on since, a copy of it up to that response. `user` names a conversation, as for /v1/chat/completions. Otherwise the request begins a session, and earlier messages of `input` are used. Images and files are data URLs.",
      headers: {
        "Idempotency-Key": "A repeated key is the same message; with a different text it is refused.",
      },
      bodyDoc: ResponseBody,
      bodyLimitBytes: bodyLimitFor(deps),
      answers: { 200: { description: "The response; with `stream`, server-sent events", schema: z.looseObject({}) } },
    },
    async ({ request, reply }) => {
      const asked = readResponseRequest(request.body);
      const spoken = parseInput(asked.text);
      const key = request.headers["idempotency-key"];
      const call = callInput(accessOf(request), asked.conversation, { kind: "message", text: asked.text }, key);
      const createdAt = Math.floor(Date.now() / 1_000);
      if (spoken.kind === "command") {
        throw new HttpError(400, "unsupported_value", "input: send commands with POST /api/messages", {
          param: "input",
        });
      }
      const placed = asked.previous === undefined ? call : await continued(deps, call, asked.previous);
      const begins = asked.previous === undefined && beginsSession(deps, call);
      const input = await agentInput(deps, placed, asked, begins);
      const signal = deps.waiters.signalFor(reply);
      if (asked.stream) return stream(deps, { asked, input, createdAt }, signal, reply);
      const pending = await deps.inbound.storeAndFollow(input, signal);
      const end = await pending.end;
      refuseFailed(end);
      return responseObject({ inboxId: pending.kept.inboxId, createdAt, head: asked.head }, end);
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/v1/responses/:id",
      summary: "One response, also while it is in progress",
      params: z.object({ id: z.string() }),
      answers: { 200: { description: "The response", schema: z.looseObject({}) } },
    },
    async ({ params }) => {
      const inboxId = inboxIdOf(params.id);
      if (inboxId === undefined) throw new HttpError(404, "not_found", `there is no response "${params.id}"`);
      const { turn } = await deps.bus.request(store.inboxGet, { inboxId });
      const head = { model: modelId, instructions: null, previous_response_id: null, user: null, metadata: {} };
      const createdAt = Math.floor((turn === null ? Date.now() : Date.parse(turn.startedAt)) / 1_000);
      const identity = { inboxId, createdAt, head };
      if (turn === null || turn.state === "running") return responseObject(identity, null);
      const text = turn.text ?? "";
      if (turn.exitReason === "error") return responseObject(identity, text);
      return responseObject(identity, { text, exitReason: turn.exitReason ?? "error", usage: turn.usage ?? noUsage });
    },
  );
}

/** The input in the session of an earlier response, or in a copy if that session has gone on since. */
async function continued(deps: HttpDeps, call: AuthorizedInput, inboxId: string): Promise<AuthorizedInput> {
  const missing = () =>
    new HttpError(404, "not_found", "previous_response_id: there is no such response", {
      param: "previous_response_id",
    });
  const { sessionId, turn } = await deps.bus.request(store.inboxGet, { inboxId });
  const session = await deps.sessions.find(sessionId);
  if (session === null) throw missing();
  const after = turn === null ? null : await seqAfter(deps, sessionId, turn.turnId);
  if (after !== null) {
    const route = `${ownPrefix}${call.conversation}`;
    await deps.inbound.acts.fork(sessionId, { route, atSeq: after - 1 }, call.externalId);
    return { ...call, thread: "separate" };
  }
  if (session.key === mainSessionKey) return { ...call, thread: "main" };
  if (!session.key.startsWith(ownPrefix)) throw missing();
  return { ...call, conversation: session.key.slice(ownPrefix.length), thread: "named" };
}

/** The position of the first message after a turn; null: the turn is the newest of the session. */
async function seqAfter({ bus }: HttpDeps, sessionId: string, turnId: string): Promise<number | null> {
  let next: number | null = null;
  for (let beforeSeq = Number.MAX_SAFE_INTEGER; ;) {
    const { messages, more } = await bus.request(store.sessionMessages, {
      sessionId,
      afterSeq: 0,
      beforeSeq,
      limit: pageSize,
    });
    for (const message of messages.toReversed()) {
      if (message.turnId === turnId) return next;
      next = message.seq;
    }
    if (!more || next === null) return null;
    beforeSeq = next;
  }
}

interface Streamed {
  asked: ResponseRequest;
  input: AuthorizedInput;
  createdAt: number;
}

/** Streams the answer. The headers are sent after the message is stored; an earlier failure is an ordinary error response. */
async function stream(
  deps: HttpDeps,
  { asked, input, createdAt }: Streamed,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<undefined> {
  const text = new AnswerText();
  const { promise: opened, resolve: open } = Promise.withResolvers<{ writer: SseWriter; events: ResponseEvents }>();
  let show = (_piece: string): void => undefined;
  const pending = await deps.inbound.storeAndFollow(input, signal, {
    kept: ({ inboxId }) => {
      const identity: ResponseIdentity = { inboxId, createdAt, head: asked.head };
      const events = new ResponseEvents(identity);
      const writer = new SseWriter(reply, () => deps.events.slowClient("sse"));
      writer.write(events.begin());
      show = (piece) => writer.write(events.text(piece));
      open({ writer, events });
    },
    event: (event) => {
      if (event.type === "turn.started") text.restart();
      if (event.type !== "text.delta") return;
      const piece = text.delta(event.step, event.attempt, event.text);
      if (piece !== "") show(piece);
    },
  });
  const { writer, events } = await opened;
  try {
    const end = await pending.end;
    refuseFailed(end);
    const rest = text.finish(end.text);
    if (rest !== "") show(rest);
    writer.end(events.finish(end));
  } catch (error) {
    writer.end(events.fail(toHttpError(error).message));
  }
  return undefined;
}
