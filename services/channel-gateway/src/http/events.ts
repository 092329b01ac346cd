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
        "Server-sent events. Durable ones (message, turn.finished) carry their seq as `id`; the others are a live view that may have gaps. Without a position the stream starts now; with 0 it starts at the beginning. If the session does not exist yet, the stream waits for it. When a key is bound to another session (`/new`), the stream continues with that session, after another event `subscribed`.",
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
      let followed: string | undefined;
      let count = 0;
      const end = () => {
        following?.close();
        writer.end();
      };
      const follow = async (sessionId: string, from: number | undefined) => {
        const number = ++count;
        followed = sessionId;
        following?.close();
        const opened = await subscribe(deps, sessionId, from, {
          begin: (position) =>
            writer.write(`event: subscribed\ndata: ${JSON.stringify({ session: sessionId, after: position })}\n\n`),
          send: (frame) => {
            if (number === count && (frame.seq !== undefined || !writer.behind)) writer.write(frame.sse);
          },
          fail: end,
        });
        if (number !== count || writer.closed || signal.aborted) opened.close();
        else following = opened;
      };
      // The headers are sent already: on an error the client sees the end of the stream and reconnects with its last id.
      const moves = deps.sessions.follow(query.session, (sessionId, seq) => {
        if (followed !== undefined && followed !== sessionId) follow(sessionId, seq).catch(end);
      });
      const leave = () => {
        moves.close();
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
        if (session === null) {
          // All events of a session that did not exist yet are new.
          await follow(await deps.sessions.appears(query.session, signal), 0);
        } else {
          // A position after the end is of the session to which the key was bound before.
          const isOfOther = query.session !== session.sessionId && (after ?? 0) > session.seq;
          await follow(session.sessionId, isOfOther ? 0 : after);
        }
      } catch {
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
