// One message and the turn that answers it as server-sent events of five kinds: token, tool_call, tool_result, done, error.
import { noCost, type SessionEvent } from "@parley/contracts";
import { SimpleEvents, type SimpleEvent } from "@parley/projections";
import { z } from "zod";
import type { TurnEnd } from "../await-turn.ts";
import { readSpoken } from "../commands/spoken.ts";
import { apiInput } from "./api-input.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { toHttpError } from "./errors.ts";
import { defaultConversation } from "./openai-format.ts";
import { SseWriter } from "./sse.ts";

const Body = z.strictObject({
  message: z.string().min(1),
  /** Names the conversation. */
  session_id: z.string().min(1).max(512).default(defaultConversation),
});

export function simpleChatRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "POST",
      url: "/v1/chat",
      summary: "Say something and see the answer come, in five kinds of events",
      description:
        "Server-sent events: `token` (a string to show), `tool_call`, `tool_result`, and at the end one `done` or one `error`. Where the agent speaks by its tool `message`, the tokens are that tool's texts. The turn goes on when the caller goes away.",
      headers: { "Idempotency-Key": "The same key again is the same message; with another text it is refused." },
      body: Body,
      answers: { 200: { description: "The stream", contentType: "text/event-stream" } },
    },
    async ({ body, request, reply }) => {
      const { inbound, events, waiters, settings } = deps;
      const key = request.headers["idempotency-key"];
      // Nobody reads approval questions at the other end of this request.
      const said = { ...apiInput(body.session_id, body.message, key), approvals: "owner" as const };
      const spoken = readSpoken(body.message);
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
      const pending = await inbound.keepAndFollow(
        { ...said, text: spoken.text, mode: spoken.mode },
        waiters.signalFor(reply),
        {
          kept: () => {
            const writer = new SseWriter(reply, () => events.slowClient("sse"));
            write = (event) => writer.write(view.event(event).map(frame).join(""));
            open(writer);
          },
          event: (event) => write(event),
        },
      );
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
