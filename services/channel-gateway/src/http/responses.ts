// OpenAI's Responses API: create a response, complete or streamed, continue it, and read it again.
import { mainSessionKey, noUsage, store } from "@parley/contracts";
import { AnswerText } from "@parley/projections";
import type { FastifyReply } from "fastify";
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { AuthorizedInput } from "../ingress/authorized-input.ts";
import { followTurn } from "../live/follow-turn.ts";
import { parseInput } from "../operations/parse-input.ts";
import { agentInput, bodyLimitFor } from "./openai-input.ts";
import { StreamedPictures, withoutPictures } from "./answer-pictures.ts";
import { accessOf } from "./api-access.ts";
import { ClientRetries } from "./client-retries.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError, toHttpError } from "./errors.ts";
import { beginsSession, refuseFailed } from "./openai.ts";
import { callInput } from "./owner-input.ts";
import {
  inboxIdOf,
  readResponseRequest,
  ResponseBody,
  responseObject,
  type ResponseIdentity,
  type ResponseRequest,
  unknownHead,
} from "./responses-format.ts";
import { ResponseEvents } from "./responses-events.ts";
import { SseWriter } from "./sse.ts";

const ownPrefix = "http:default:";
/** How long a cancellation waits for the end of the turn. */
const cancelWaitMs = 10_000;
/** Messages per page when the place of a response in its session is searched. */
const pageSize = 200;
/** A request that continues a response becomes visible in the session within this time, unless the session is busy. */
const continuationMs = 60_000;

/** The message that continues a response in its session, by the inbox id of the response. Known to this replica only. */
type Continuations = LRUCache<string, string>;

export function responseRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const retries = new ClientRetries();
  const continuations: Continuations = new LRUCache({ max: 10_000, ttl: continuationMs });
  endpoints.add(
    {
      method: "POST",
      url: "/v1/responses",
      scope: "talk",
      summary: "Send a message and get the answer in the format of OpenAI's Responses API",
      description:
        "Each request gets its own turn. `previous_response_id` continues the session of that response; if the session has gone on since, a copy of it up to that response. `user` names a conversation, as for /v1/chat/completions. Otherwise the request begins a session, and earlier messages of `input` are used. Images and files are data URLs. With `background` the answer is the response as queued: read it again, or cancel it.",
      headers: {
        "Idempotency-Key": "A repeated key is the same message; with a different text it is refused.",
      },
      bodyDoc: ResponseBody,
      bodyLimitBytes: bodyLimitFor(deps),
      answers: { 200: { description: "The response; with `stream`, server-sent events", schema: z.looseObject({}) } },
    },
    async ({ request, reply }) => {
      const chat = readResponseRequest(request.body);
      const parsed = parseInput(chat.text);
      const key = retries.keyOf(request, reply);
      const call = callInput(accessOf(request), chat.conversation, { kind: "message", text: chat.text }, key);
      const createdAt = Math.floor(Date.now() / 1_000);
      if (parsed.kind === "command") {
        throw new HttpError(400, "unsupported_value", "input: send commands with POST /api/messages", {
          param: "input",
        });
      }
      const placed = chat.previous === undefined ? call : await continued(deps, continuations, call, chat.previous);
      const begins = chat.previous === undefined && beginsSession(deps, call);
      const input = await agentInput(deps, placed, chat, begins);
      const signal = deps.waiters.signalFor(reply);
      if (chat.background && !chat.stream) {
        const { inboxId } = await deps.inbound.store(input);
        return responseObject({ inboxId, createdAt, head: chat.head }, "queued");
      }
      if (chat.stream) return stream(deps, { chat, input, createdAt }, signal, reply);
      const pending = await deps.inbound.storeAndFollow(input, signal);
      const end = await pending.end;
      refuseFailed(end);
      const text = chat.answer?.jsonSchema === undefined ? await withoutPictures(end.text) : end.text;
      return responseObject({ inboxId: pending.kept.inboxId, createdAt, head: chat.head }, { ...end, text });
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
      return read(deps, rowIdOf(params.id));
    },
  );

  endpoints.add(
    {
      method: "POST",
      url: "/v1/responses/:id/cancel",
      scope: "talk",
      summary: "Stop the turn of a response, or withdraw it from the queue",
      description: "A response that has ended is returned as it is.",
      params: z.object({ id: z.string() }),
      answers: { 200: { description: "The response", schema: z.looseObject({}) } },
    },
    async ({ params, reply }) => {
      const inboxId = rowIdOf(params.id);
      await cancel(deps, inboxId, AbortSignal.any([deps.waiters.signalFor(reply), AbortSignal.timeout(cancelWaitMs)]));
      return read(deps, inboxId);
    },
  );
}

/** Throws HttpError 404 for what is not the id of a response. */
function rowIdOf(id: string): string {
  const inboxId = inboxIdOf(id);
  if (inboxId === undefined) throw new HttpError(404, "not_found", `there is no response "${id}"`);
  return inboxId;
}

/** The response as it is now. */
async function read({ bus }: HttpDeps, inboxId: string): Promise<object> {
  const { state, turn } = await bus.request(store.inboxGet, { inboxId });
  const createdAt = Math.floor((turn === null ? Date.now() : Date.parse(turn.startedAt)) / 1_000);
  const identity = { inboxId, createdAt, head: unknownHead };
  if (turn === null) {
    const withdrawn = { state: "cancelled", text: "", exitReason: "aborted", usage: noUsage } as const;
    return responseObject(identity, state === "cancelled" ? withdrawn : "queued");
  }
  if (turn.state === "running") return responseObject(identity, null);
  const { state: ended, exitReason, usage } = turn;
  if (exitReason === "error") return responseObject(identity, { failure: turn.text ?? "" });
  const text = await withoutPictures(turn.text ?? "");
  return responseObject(identity, { state: ended, text, exitReason: exitReason ?? "error", usage });
}

/** Stops the turn, or withdraws the input, and waits for the end until `signal` aborts. */
async function cancel(deps: HttpDeps, inboxId: string, signal: AbortSignal): Promise<void> {
  const { bus, sessions } = deps;
  const { state, sessionId, turn } = await bus.request(store.inboxGet, { inboxId });
  if (turn === null && state === "queued") {
    const { changed } = await bus.request(store.inboxEdit, { inboxId, change: { do: "cancel" } });
    // Its turn may have begun meanwhile.
    return changed ? deps.live.refresh() : cancel(deps, inboxId, signal);
  }
  if (turn?.state !== "running") return;
  const session = await sessions.find(sessionId);
  const stored = { inboxId, sessionId, duplicate: true, same: true };
  const { end } = await followTurn(deps, session?.key ?? "", async () => stored, signal);
  await deps.inbound.cancel({ sessionId, turnId: turn.turnId, queued: false });
  await end.catch(() => undefined);
}

/**
 * The input in the session of an earlier response, or in a copy if that session has gone on since. Of concurrent requests that continue the
 * same response, one gets the session.
 */
async function continued(
  deps: HttpDeps,
  continuations: Continuations,
  call: AuthorizedInput,
  inboxId: string,
): Promise<AuthorizedInput> {
  const missing = () =>
    new HttpError(404, "not_found", "previous_response_id: there is no such response", {
      param: "previous_response_id",
    });
  const { sessionId, turn } = await deps.bus.request(store.inboxGet, { inboxId });
  const session = await deps.sessions.find(sessionId);
  if (session === null) throw missing();
  const after = turn === null ? null : await seqAfter(deps, sessionId, turn.turnId);
  const first = continuations.get(inboxId);
  if (first === undefined) continuations.set(inboxId, call.externalId);
  // The session was read before its messages: without a later one, it ended with the turn of the response.
  const isTaken = first !== undefined && first !== call.externalId && turn !== null && turn.state !== "running";
  const endSeq = after === null ? (isTaken ? session.seq : null) : after - 1;
  if (endSeq !== null) {
    const route = `${ownPrefix}${call.conversation}`;
    await deps.inbound.acts.fork(sessionId, { route, atSeq: endSeq }, call.externalId);
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
  chat: ResponseRequest;
  input: AuthorizedInput;
  createdAt: number;
}

/** Streams the answer. The headers are sent after the message is stored; an earlier failure is an ordinary error response. */
async function stream(
  deps: HttpDeps,
  { chat, input, createdAt }: Streamed,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<undefined> {
  const text = new AnswerText();
  const pictures = new StreamedPictures();
  const isJson = chat.answer?.jsonSchema !== undefined;
  const { promise: opened, resolve: open } = Promise.withResolvers<{ writer: SseWriter; events: ResponseEvents }>();
  let show = (_piece: string): void => undefined;
  const pending = await deps.inbound.storeAndFollow(input, signal, {
    kept: ({ inboxId }) => {
      const identity: ResponseIdentity = { inboxId, createdAt, head: chat.head };
      const events = new ResponseEvents(identity);
      const writer = new SseWriter(reply, () => deps.events.slowClient("sse"));
      writer.write(events.begin());
      show = (piece) => writer.write(events.text(piece));
      open({ writer, events });
    },
    event: (event) => {
      if (event.type === "turn.started") text.restart();
      // An answer that must be JSON is shown when it has been checked.
      if (event.type !== "text.delta" || isJson) return;
      const piece = pictures.add(text.delta(event.step, event.attempt, event.text));
      if (piece !== "") show(piece);
    },
  });
  const { writer, events } = await opened;
  try {
    const end = await pending.end;
    refuseFailed(end);
    const last = text.finish(end.text);
    const rest = isJson ? last : pictures.add(last) + (await pictures.end());
    if (rest !== "") show(rest);
    writer.end(events.finish(end));
  } catch (error) {
    writer.end(events.fail(toHttpError(error).message));
  }
  return undefined;
}
