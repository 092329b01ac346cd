// One message and the turn that answers it as server-sent events of five kinds: token, tool_call, tool_result, done, error.
import { noCost, type SessionEvent } from "@parley/contracts";
import { SimpleEvents, type SimpleEvent } from "@parley/projections";
import { z } from "zod";
import type { TurnEnd } from "../await-turn.ts";
import { readSpoken } from "../commands/spoken.ts";
import { callInput } from "./api-input.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { toHttpError } from "./errors.ts";
import { SseWriter } from "./sse.ts";

const Body = z.strictObject({
  message: z.string().min(1),
  /** Names the conversation; without it the request has a session of its own. */
  session_id: z.string().min(1).max(512).optional(),
});

export function simpleChatRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "POST",
      url: "/v1/chat",
      summary: "Say something and see the answer come, in five kinds of events",
      description:
        "Server-sent events: `token` (a string to show), `tool_call`, `tool_result`, and at the end one `done` or one `error`. Where the agent speaks by its tool `message`, the tokens are that tool's texts. Each request is a turn of its own, regardless of the queue mode; `session_id` names the conversation, as `user` does for /v1/chat/completions. The turn goes on when the caller goes away.",
      headers: { "Idempotency-Key": "The same key again is the same message; with another text it is refused." },
      body: Body,
      answers: { 200: { description: "The stream", contentType: "text/event-stream" } },
    },
    async ({ body, request, reply }) => {
      const { inbound, events, waiters, settings } = deps;
      const spoken = readSpoken(body.message);
      const said = callInput(body.session_id, spoken, request.headers["idempotency-key"]);
      if (spoken.kind === "command") {
        events.inbound(said.channel, "command");
        const text = await inbound.carryOut(spoken.command, inbound.speakerOf(said));
        new SseWriter(reply).end(frame({ type: "token", data: text }) + frame({ type: "done", data: commandDone }));
        return undefined;
      }
      const view = new SimpleEvents(settings.output);
      const { promise: opened, resolve: open } = Promise.withResolvers<SseWriter>();
      let write = (_event: SessionEvent): void => undefined;
      // The head goes out after the message is kept: what fails before that is an ordinary error.
      const pending = await inbound.keepAndFollow(said, waiters.signalFor(reply), {
        kept: () => {
          const writer = new SseWriter(reply, () => events.slowClient("sse"));
          write = (event) => writer.write(view.event(event).map(frame).join(""));
          open(writer);
        },
        event: (event) => write(event),
      });
      const writer = await opened;
      try {
        // Says nothing where the end itself was heard.
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

/** The end of a turn as an event, from what is known of it. */
function finished({ turnId, ...end }: TurnEnd): SessionEvent {
  return { type: "turn.finished", seq: 0, turnId: turnId ?? "", ...end, cost: noCost };
}
