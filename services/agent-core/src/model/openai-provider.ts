// What the providers of OpenAI's two formats share: corrected requests, streams and the data of the server. Retries, watchdogs and the
// loop are elsewhere.
import { randomUUID } from "node:crypto";
import type { Secret } from "@parley/chassis";
import { isOpenAi } from "./openai/dialect.ts";
import { rejectedRequest, transportError } from "./openai/errors.ts";
import { askJson, askNote, endpoint, findWindow, serverOf } from "./openai/server.ts";
import { ModelError, type ModelProvider, type ModelReply, type ModelRequest } from "./provider.ts";
import { receive, type EventSink } from "./sse.ts";

export interface OpenAiOptions {
  /** Self-hosted servers often need none. */
  apiKey?: Secret | undefined;
  /** Including `/v1`. */
  baseUrl: string;
  model: string;
  /** The provider's name. Default: `openai`. */
  name?: string;
  /** Default: the environment variables of `openai`. */
  keyVariable?: string | undefined;
  addressSetting?: string;
}

/** The ids that a reply may not use for its calls, and the source of new ones. */
interface CallIds {
  takenIds: string[];
  newId: () => string;
}

interface ReplyBuilder extends EventSink {
  /** Whether the reply is complete; only the usage may follow. */
  readonly complete: boolean;
  reply(): ModelReply;
}

/** One request, which changes while the server refuses it. */
export interface RequestDraft<Body> {
  body(): Body;
  /** Changes the next body where the error shows how; false where it does not. `refused`: the body that was sent. */
  correct(error: ModelError, refused: Body): boolean;
  /** The server has answered this body. */
  answered(body: Body): void;
}

/** One of OpenAI's formats. */
interface WireFormat<Body> {
  /** Below the base address. */
  path: string;
  draft(request: ModelRequest): RequestDraft<Body>;
  builder(ids: CallIds): ReplyBuilder;
}

/** How often one request may be corrected after a refusal. */
const maxCorrections = 5;

export function createOpenAiProvider<Body>(options: OpenAiOptions, format: WireFormat<Body>): ModelProvider {
  const { baseUrl, model, name = "openai" } = options;
  const server = serverOf(options);
  const official = isOpenAi(baseUrl);
  let note: string | null = null;

  /** A successful response to the returned body. After a refusal the request is corrected where the error shows how. */
  const send = async (draft: RequestDraft<Body>, signal: AbortSignal): Promise<{ response: Response; body: Body }> => {
    for (let corrections = 0; ; corrections++) {
      const body = draft.body();
      const response = await fetch(endpoint(baseUrl, format.path), {
        method: "POST",
        headers: { ...server.headers(), "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify(body),
        signal,
      });
      if (response.ok) return { response, body };
      const error = rejectedRequest(response, await response.text(), server.addressSetting);
      if (corrections >= maxCorrections || !draft.correct(error, body)) throw error;
    }
  };

  return {
    name,
    model,
    priceList: official ? "official" : "unknown",
    note: () => note,
    async prepare() {
      note = await askNote(server);
    },
    async stream(request, on, signal) {
      const builder = format.builder({ takenIds: callIds(request), newId: newCallId });
      const draft = format.draft(request);
      try {
        const { response, body } = await send(draft, signal);
        await receive(response, builder, on, server.addressSetting);
        draft.answered(body);
      } catch (error) {
        signal.throwIfAborted();
        const failure = transportError(error);
        // A connection lost after the end of the answer loses only the usage.
        if (failure.failure !== "connection" || !builder.complete) throw failure.withKeyVariable(server.keyVariable);
      }
      signal.throwIfAborted();
      // A connection that closes cleanly in the middle looks like the end of the stream.
      if (!builder.complete) throw new ModelError("connection", "the model's stream ended in the middle of its answer");
      note = null;
      return builder.reply();
    },
    async size(signal) {
      if (official) return { contextTokens: null, maxOutputTokens: null };
      return findWindow(model, askJson(server, signal));
    },
  };
}

function newCallId(): string {
  return `call_${randomUUID().replaceAll("-", "")}`;
}

/** Ids of the calls in the prompt. */
function callIds(request: ModelRequest): string[] {
  return request.messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : [])),
  );
}
