// POST /v1/chat: one message and its turn as server-sent events of five types: token, tool_call, tool_result, done, error.
import { noCost, type SessionEvent } from "@parley/contracts";
import { SimpleEvents, type SimpleEvent } from "@parley/projections";
import { z } from "zod";
import type { TurnEnd } from "../live/follow-turn.ts";
import { parseInput } from "../operations/parse-input.ts";
import { callInput, inputFor } from "./owner-input.ts";
import { accessOf } from "./api-access.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { toHttpError } from "./errors.ts";
import { SseWriter } from "./sse.ts";

const Body = z.strictObject({
  message: z.string().min(1),
  /** Names the conversation; without it the request gets its own session. */
  session_id: z.string().min(1).max(512).optional(),
  /** The profile that answers, in a session of its own; omitted: the agent itself. */
  profile: z.string().optional(),
});

export function simpleChatRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "POST",
      url: "/v1/chat",
      scope: "talk",
      summary: "Send a message and stream the answer as five types of events",
      description:
        "Server-sent events: `token` (a string to show), `tool_call`, `tool_result`, and at the end one `done` or one `error`. When the agent answers with its tool `message`, the tokens are the texts of that tool. Each request gets its own turn, regardless of the queue mode; `session_id` names the conversation, as `user` does for /v1/chat/completions. The turn continues when the caller disconnects.",
      headers: { "Idempotency-Key": "A repeated key is the same message; with a different text it is refused." },
      body: Body,
      answers: { 200: { description: "The stream", contentType: "text/event-stream" } },
    },
    async ({ body, request, reply }) => {
      const { inbound, events, waiters, settings } = deps;
      const parsed = parseInput(body.message);
      const call = callInput(accessOf(request), body.session_id, parsed, request.headers["idempotency-key"]);
      const input = inputFor(settings, call, body.profile);
      if (parsed.kind === "command") {
        events.inbound(input.channel, "command");
        const text = await inbound.runCommand(parsed.command, inbound.speakerOf(input));
        new SseWriter(reply).end(frame({ type: "token", data: text }) + frame({ type: "done", data: commandDone }));
        return undefined;
      }
      const view = new SimpleEvents(settings.output);
      const { promise: opened, resolve: open } = Promise.withResolvers<SseWriter>();
      let write = (_event: SessionEvent): void => undefined;
      // The headers are sent after the message is stored; an earlier failure is an ordinary error response.
      const pending = await inbound.storeAndFollow(input, waiters.signalFor(reply), {
        kept: () => {
          const writer = new SseWriter(reply, () => events.slowClient("sse"));
          write = (event) => writer.write(view.event(event).map(frame).join(""));
          open(writer);
        },
        event: (event) => write(event),
      });
      const writer = await opened;
      try {
        // Emits nothing when the end event was already received.
        write(finished(await pending.end));
        writer.end();
      } catch (error) {
        writer.end(frame({ type: "error", data: toHttpError(error).message }));
      }
      return undefined;
    },
  );
}

const commandDone = {
  exit_reason: "command",
  usage: { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
};

function frame({ type, data }: SimpleEvent): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The end of a turn as an event. */
function finished({ turnId, ...end }: TurnEnd): SessionEvent {
  return { type: "turn.finished", seq: 0, turnId: turnId ?? "", ...end, cost: noCost };
}
