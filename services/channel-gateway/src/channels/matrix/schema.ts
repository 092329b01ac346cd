// Schemas of the used parts of the client-server API. The server makes the envelope of an event; its content comes from a person's
// client, so every field of it is checked where it is read.
import { z } from "zod";

const Content = z.record(z.string(), z.unknown()).catch({});

export const MatrixEvent = z.object({
  event_id: z.string().min(1).max(255),
  type: z.string(),
  sender: z.string().min(1).max(255),
  origin_server_ts: z.number().int().min(0).max(8.64e15).optional().catch(undefined),
  state_key: z.string().optional().catch(undefined),
  content: Content,
  redacts: z.string().optional().catch(undefined),
  unsigned: z
    .object({
      prev_content: Content.optional(),
      "m.relations": z
        .object({ "m.replace": z.object({ content: Content }).optional().catch(undefined) })
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
});
export type MatrixEvent = z.infer<typeof MatrixEvent>;

/** The readable events of a list; others are left out. */
const Events = z
  .array(z.unknown())
  .catch([])
  .transform((events) => events.flatMap((event) => MatrixEvent.safeParse(event).data ?? []));

const StrippedEvent = z.object({
  type: z.string(),
  sender: z.string(),
  state_key: z.string().catch(""),
  content: Content,
});
const StrippedEvents = z
  .array(z.unknown())
  .catch([])
  .transform((events) => events.flatMap((event) => StrippedEvent.safeParse(event).data ?? []));

const Room = z.object({
  state: z.object({ events: Events }).catch({ events: [] }),
  timeline: z
    .object({ events: Events, limited: z.boolean().catch(false), prev_batch: z.string().optional().catch(undefined) })
    .catch({ events: [], limited: false, prev_batch: undefined }),
});
export type SyncedRoom = z.infer<typeof Room>;

const InvitedRoom = z.object({ invite_state: z.object({ events: StrippedEvents }).catch({ events: [] }) });
export type InvitedRoom = z.infer<typeof InvitedRoom>;

export const Sync = z.object({
  next_batch: z.string(),
  rooms: z
    .object({
      join: z.record(z.string(), Room).default({}),
      invite: z.record(z.string(), InvitedRoom).default({}),
      leave: z.record(z.string(), Room).default({}),
    })
    .default({ join: {}, invite: {}, leave: {} }),
});

export const Messages = z.object({ chunk: Events, end: z.string().optional() });
export const Identity = z.object({ user_id: z.string().min(1) });
export const Profile = z.object({ displayname: z.string().optional() }).catch({});
export const JoinedRooms = z.object({ joined_rooms: z.array(z.string()) });
export const JoinedMembers = z.object({ joined: z.record(z.string(), z.unknown()) });
export const SentEvent = z.object({ event_id: z.string() });
export const Uploaded = z.object({ content_uri: z.string() });
export const Relations = z.object({ chunk: Events });
