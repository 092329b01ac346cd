// The events of a room since the last synchronization. The response contains only the newest events of a busy room; older ones are fetched
// page by page.
import type { z } from "zod";
import type { Answer } from "../json-api.ts";
import { withTimeout } from "../transport.ts";
import { path, resultOrNull, type MatrixApi } from "./api.ts";
import { Messages, type MatrixEvent, type SyncedRoom } from "./schema.ts";

const eventTypes = ["m.room.message", "m.room.encrypted", "m.room.redaction", "m.reaction", "m.room.member"];
/** Events per response and page. */
const pageEvents = 50;
/** 10,000 events, so that memory is bounded after a long outage. */
const maxPages = 200;
const requestTimeoutMs = 30_000;

/**
 * Redundant members: the server sends the names of senders with every response, because an earlier response may have gone to another
 * replica.
 */
export const syncFilter = JSON.stringify({
  presence: { types: [] },
  account_data: { types: [] },
  room: {
    timeline: { types: eventTypes, limit: pageEvents, lazy_load_members: true },
    state: { types: ["m.room.member"], lazy_load_members: true, include_redundant_members: true },
    ephemeral: { types: [] },
    account_data: { types: [] },
  },
});

export interface TimelineDeps {
  api: MatrixApi;
  userId: string;
  signal: AbortSignal;
  /** Called when there are more than `maxPages` of events, so that older ones are lost. */
  onTruncated: () => void;
}

/** All events since `since`, oldest first; after a join those since the invitation, because people write while the agent joins. */
export async function eventsSince(
  deps: TimelineDeps,
  roomId: string,
  { timeline: { events, limited, prev_batch: before } }: SyncedRoom,
  since: string,
): Promise<readonly MatrixEvent[]> {
  const isOwn = (event: MatrixEvent, membership: string): boolean =>
    event.type === "m.room.member" && event.state_key === deps.userId && event.content["membership"] === membership;
  const isInvitation = (event: MatrixEvent): boolean => isOwn(event, "invite");
  const joined = events.findLastIndex(
    (event) => isOwn(event, "join") && event.unsigned?.prev_content?.["membership"] !== "join",
  );
  if (joined === -1) {
    return limited && before !== undefined ? [...(await fetchBefore(deps, roomId, before, since)), ...events] : events;
  }
  if (!events[joined]?.unsigned?.prev_content?.["membership"]) return events.slice(joined);
  const isComplete = !limited || before === undefined || events.some(isInvitation);
  const all = isComplete ? events : [...(await fetchBefore(deps, roomId, before, null, isInvitation)), ...events];
  const invited = all.findLastIndex(isInvitation);
  return all.slice(invited === -1 ? joined : invited);
}

/** Reads backwards to `since`, or to an event that `isFirst` accepts. */
async function fetchBefore(
  { api, signal, onTruncated }: TimelineDeps,
  roomId: string,
  before: string,
  since: string | null,
  isFirst: (event: MatrixEvent) => boolean = () => false,
): Promise<MatrixEvent[]> {
  const found: MatrixEvent[] = [];
  let from = before;
  for (let page = 0; page < maxPages; page += 1) {
    const answer: Answer<z.infer<typeof Messages>> = await api({
      method: "GET",
      path: path`/client/v3/rooms/${roomId}/messages`,
      query: {
        dir: "b",
        from,
        ...(since === null ? {} : { to: since }),
        limit: String(pageEvents),
        filter: JSON.stringify({ types: eventTypes }),
      },
      result: Messages,
      signal: withTimeout(signal, requestTimeoutMs),
    });
    // Null: the agent may not read this room, because it has left.
    const { chunk, end } = (await resultOrNull(answer, signal)) ?? { chunk: [] };
    found.push(...chunk);
    if (end === undefined || end === from || chunk.some(isFirst)) return found.toReversed();
    from = end;
  }
  onTruncated();
  return found.toReversed();
}
