// A session's events as server-sent events: what was missed, then what happens. A reader that comes back with the last id it
// saw, at any replica, misses nothing and gets nothing twice.
import { mainSessionKey } from "@parley/contracts";
import { z } from "zod";
import { follow, type Following } from "../follow.ts";
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
        "Server-sent events. Durable ones (message, turn.finished) carry their seq as `id`; the others are a live view that may have holes. Without a position it begins now; with 0 at the very beginning. A session that does not exist yet is waited for.",
      headers: { "Last-Event-ID": "The last `id` that was seen; wins over `after`." },
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
      let following: Following | undefined;
      const end = () => {
        following?.close();
        writer.end();
      };
      signal.addEventListener(
        "abort",
        () => {
          deps.events.clients("sse", -1);
          end();
        },
        { once: true },
      );
      try {
        writer.write("retry: 1000\n\n");
        const sessionId = session?.sessionId ?? (await deps.sessions.appears(query.session, signal));
        // All of a session that was waited for is news.
        following = await follow(deps, sessionId, session === null ? 0 : after, {
          begin: (from) =>
            writer.write(`event: subscribed\ndata: ${JSON.stringify({ session: sessionId, after: from })}\n\n`),
          send: (frame) => {
            if (frame.seq !== undefined || !writer.behind) writer.write(frame.sse);
          },
          fail: end,
        });
        if (writer.closed || signal.aborted) following.close();
      } catch {
        // The head is sent: the reader sees the end, and comes again with its last id.
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
