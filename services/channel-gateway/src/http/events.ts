// A session's events as server-sent events: first the missed ones, then live. A client that reconnects with its last id, at any
// replica, receives each durable event exactly once.
import { mainSessionKey } from "@parley/contracts";
import { z } from "zod";
import { subscribe, type Subscription } from "../live/subscribe.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { SseWriter } from "./sse.ts";

const position = z.coerce.number().int().min(0);

export function eventRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/events",
      summary: "A session's events as they happen",
      description:
        "Server-sent events. Durable ones (message, turn.finished) carry their seq as `id`; the others are a live view that may have gaps. Without a position the stream starts now; with 0 it starts at the beginning. If the session does not exist yet, the stream waits for it.",
      headers: { "Last-Event-ID": "The last received `id`; takes precedence over `after`." },
      query: z.strictObject({
        /** Id or key. */
        session: z.string().min(1).max(600).default(mainSessionKey),
        after: position.optional(),
      }),
      answers: { 200: { description: "The stream", contentType: "text/event-stream" } },
    },
    async ({ query, request, reply }) => {
      const after = lastEventId(request.headers["last-event-id"]) ?? query.after;
      const session = await deps.sessions.find(query.session);
      const signal = deps.watchers.signalFor(reply);
      const writer = new SseWriter(reply, () => deps.events.slowClient("sse"));
      deps.events.clients("sse", 1);
      let following: Subscription | undefined;
      const end = () => {
        following?.close();
        writer.end();
      };
      const leave = () => {
        deps.events.clients("sse", -1);
        end();
      };
      writer.write("retry: 1000\n\n");
      if (signal.aborted) {
        leave();
        return undefined;
      }
      signal.addEventListener("abort", leave, { once: true });
      try {
        const sessionId = session?.sessionId ?? (await deps.sessions.appears(query.session, signal));
        // All events of a session that did not exist yet are new.
        following = await subscribe(deps, sessionId, session === null ? 0 : after, {
          begin: (from) =>
            writer.write(`event: subscribed\ndata: ${JSON.stringify({ session: sessionId, after: from })}\n\n`),
          send: (frame) => {
            if (frame.seq !== undefined || !writer.behind) writer.write(frame.sse);
          },
          fail: end,
        });
        if (writer.closed || signal.aborted) following.close();
      } catch {
        // The headers are sent already: the client sees the end of the stream and reconnects with its last id.
        end();
      }
      return undefined;
    },
  );
}

function lastEventId(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  const parsed = position.safeParse(header);
  if (!parsed.success) throw new HttpError(400, "invalid_request", "Last-Event-ID: must be the id of an event");
  return parsed.data;
}
