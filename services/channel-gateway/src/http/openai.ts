// The OpenAI-compatible API: chat completions, complete and streamed, and the model list. The turn is durable: it continues when the
// caller disconnects.
import { randomUUID } from "node:crypto";
import { noUsage } from "@parley/contracts";
import { AnswerText } from "@parley/projections";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { TurnEnd } from "../live/follow-turn.ts";
import { parseInput } from "../operations/parse-input.ts";
import { agentInput, bodyLimitFor } from "./openai-input.ts";
import { callInput } from "./owner-input.ts";
import { StreamedPictures, withoutPictures } from "./answer-pictures.ts";
import { accessOf } from "./api-access.ts";
import { ClientRetries } from "./client-retries.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError, openaiBody, toHttpError } from "./errors.ts";
import {
  ChatBody,
  chunkFrames,
  completion,
  finishReason,
  modelId,
  readChatRequest,
  type ChatRequest,
  type ChunkFrames,
  type CompletionHead,
} from "./openai-format.ts";
import { SseWriter } from "./sse.ts";
import { StopCut } from "./stop-cut.ts";

const ModelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.number().int(),
  owned_by: z.string(),
});

const model: z.infer<typeof ModelSchema> = { id: modelId, object: "model", created: 0, owned_by: "parley" };

export function openaiRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  const retries = new ClientRetries();
  endpoints.add(
    {
      method: "POST",
      url: "/v1/chat/completions",
      scope: "talk",
      summary: "Send a message and get the answer in OpenAI's format",
      description:
        'Each request gets its own turn and its own answer: concurrent requests never share a turn, regardless of the queue mode. `user` names the conversation: its requests are answered one after another, in the session that `[session] policy` selects (with `singleton`, the default, the owner\'s session `main`). Without `user` each request gets its own session, unless `[session] synchronous` is `shared`. Without `user`, a command or a text that begins with /steer, /later or /now belongs to the conversation "default"; with /steer it joins the running turn and gets the answer of that turn. System and developer messages are instructions for the agent. Earlier messages are used without `user`; a named conversation has its own history. Images and files are data URLs. `model` is echoed. The turn continues when the caller disconnects; repeat the request with the same Idempotency-Key to get its answer.',
      headers: {
        "Idempotency-Key":
          "A repeated key is the same message: its answer is returned and nothing is sent twice. With a different text it is refused.",
      },
      bodyDoc: ChatBody,
      bodyLimitBytes: bodyLimitFor(deps),
      answers: {
        200: { description: "The answer; with `stream`, server-sent events", schema: z.looseObject({}) },
        409: {
          description:
            "idempotency_key_reused: the key was used with a different text; busy: messages are refused while a turn is running",
        },
      },
    },
    async ({ request, reply }) => {
      const chat = readChatRequest(request.body);
      const head: CompletionHead = { id: "", created: Math.floor(Date.now() / 1_000), model: chat.model };
      const parsed = parseInput(chat.text);
      const call = callInput(accessOf(request), chat.conversation, parsed, retries.keyOf(request, reply));
      if (parsed.kind === "command") {
        const text = await deps.inbound.runCommand(parsed.command, deps.inbound.speakerOf(call));
        deps.events.inbound(call.channel, "command");
        return answerAtOnce(chat, { ...head, id: `chatcmpl-${randomUUID()}` }, text, reply);
      }
      const input = await agentInput(deps, call, chat, beginsSession(deps, call));
      const signal = deps.waiters.signalFor(reply);
      if (chat.stream) return stream(deps, chat, head, input, signal, reply);

      const pending = await deps.inbound.storeAndFollow(input, signal);
      const end = await pending.end;
      refuseFailed(end);
      refuseStopped(end);
      const id = `chatcmpl-${pending.kept.inboxId}`;
      const text = chat.answer?.jsonSchema === undefined ? await withoutPictures(end.text) : end.text;
      return completion({ ...head, id }, text, finishReason(end.exitReason), end.usage);
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/v1/models",
      scope: null,
      summary: "The only model: the agent",
      answers: {
        200: {
          description: "OpenAI's list",
          schema: z.object({ object: z.literal("list"), data: z.array(ModelSchema) }),
        },
      },
    },
    async () => ({ object: "list", data: [model] }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/v1/models/:model",
      scope: null,
      summary: "One model",
      params: z.object({ model: z.string() }),
      answers: { 200: { description: "The model", schema: ModelSchema } },
    },
    async ({ params }) => {
      if (params.model !== modelId) throw new HttpError(404, "model_not_found", `the only model is "${modelId}"`);
      return model;
    },
  );
}

/** Streams the answer. The headers are sent after the message is stored; an earlier failure is an ordinary error response. */
async function stream(
  deps: HttpDeps,
  chat: ChatRequest,
  head: CompletionHead,
  input: ReturnType<typeof callInput>,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<undefined> {
  const text = new AnswerText();
  const pictures = new StreamedPictures();
  const { jsonSchema, stop = [] } = chat.answer ?? {};
  const cut = new StopCut(stop);
  const { promise: opened, resolve: open } = Promise.withResolvers<{ writer: SseWriter; frames: ChunkFrames }>();
  let show = (_piece: string): void => undefined;
  const pending = await deps.inbound.storeAndFollow(input, signal, {
    kept: ({ inboxId }) => {
      const frames = chunkFrames({ ...head, id: `chatcmpl-${inboxId}` });
      const writer = new SseWriter(reply, () => deps.events.slowClient("sse"));
      writer.write(frames.role());
      show = (piece) => writer.write(frames.text(piece));
      open({ writer, frames });
    },
    event: (event) => {
      if (event.type === "turn.started") {
        text.restart();
        cut.restart();
      }
      // An answer that must be JSON is shown when it has been checked.
      if (event.type !== "text.delta" || jsonSchema !== undefined) return;
      const { step, attempt } = event;
      const piece = pictures.add(text.delta(step, attempt, cut.delta(step, attempt, event.text)));
      if (piece !== "") show(piece);
    },
  });
  const { writer, frames } = await opened;
  try {
    const end = await pending.end;
    refuseFailed(end);
    refuseStopped(end);
    const last = text.finish(end.text);
    const rest = jsonSchema === undefined ? pictures.add(last) + (await pictures.end()) : last;
    if (rest !== "") show(rest);
    writer.write(frames.finish(finishReason(end.exitReason)));
    if (chat.includeUsage) writer.write(frames.usage(end.usage));
    writer.end(frames.done());
  } catch (error) {
    writer.end(frames.error(openaiBody(toHttpError(error))));
  }
  return undefined;
}

function answerAtOnce(chat: ChatRequest, head: CompletionHead, text: string, reply: FastifyReply): object | undefined {
  if (!chat.stream) return completion(head, text, "stop", noUsage);
  const frames = chunkFrames(head);
  const writer = new SseWriter(reply);
  writer.write(frames.role() + frames.text(text) + frames.finish("stop"));
  if (chat.includeUsage) writer.write(frames.usage(noUsage));
  writer.end(frames.done());
  return undefined;
}

/** Whether the call gets a session of its own, which has no history yet. */
export function beginsSession({ settings }: HttpDeps, { thread }: ReturnType<typeof callInput>): boolean {
  return thread === "own" && settings.session.synchronous === "own";
}

/** Throws an error for a failed turn, with the text that a person would have received. */
export function refuseFailed(end: TurnEnd): void {
  if (end.exitReason !== "error") return;
  // Otherwise OpenAI clients would retry automatically and start another turn.
  throw new HttpError(502, "turn_failed", end.text, { headers: { "x-should-retry": "false" } });
}

/** Throws an error for a turn that somebody stopped, and for a message that was withdrawn: what there is, is not the answer. */
function refuseStopped(end: TurnEnd): void {
  if (end.state !== "cancelled") return;
  // The client does not repeat it: somebody decided that it ends.
  throw new HttpError(409, "turn_stopped", end.text, { headers: { "x-should-retry": "false" } });
}
