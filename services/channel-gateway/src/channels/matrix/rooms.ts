// What the connection knows about rooms: members' names, whether a room is a conversation with one person, events that others refer to,
// invitations, and the sentence for encrypted rooms. Everything is read again from the server after a takeover.
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { MatrixAccount } from "@parley/contracts";
import type { ChannelHost } from "../channel.ts";
import { shownName } from "../parsed.ts";
import { withTimeout } from "../transport.ts";
import { path, resultOrNull, type MatrixApi } from "./api.ts";
import type { Me } from "./parse.ts";
import { objectOf, relationOf, textOf } from "./relations.ts";
import { JoinedMembers, JoinedRooms, MatrixEvent, Profile, SentEvent, type InvitedRoom } from "./schema.ts";

type People = Pick<MatrixAccount, "owners" | "allow_from" | "dm_policy" | "groups">;

/** Timeout of one request. */
const requestTimeoutMs = 15_000;
/** Account data of a room on the homeserver: the sentence was sent. */
export const noticeType = "org.parley.encrypted_notice";

export const encryptedNotice =
  "I cannot answer here because this room is end-to-end encrypted, which I do not support yet: please create a room with encryption turned off and invite me there.";

export class Rooms {
  readonly #api: MatrixApi;
  readonly #people: People;
  readonly #userId: string;
  readonly #signal: AbortSignal;
  readonly #names = new LRUCache<string, string>({ max: 2_000 });
  readonly #direct = new LRUCache<string, boolean>({ max: 1_000 });
  readonly #events = new LRUCache<string, MatrixEvent>({ max: 200 });
  readonly #threadRelations = new LRUCache<string, object>({ max: 1_000 });
  readonly #explained = new Set<string>();
  /** The agent's former names per room: messages that use them may still arrive. */
  readonly #formerNames = new LRUCache<string, string>({ max: 1_000 });
  #profileName: string | undefined;

  /** `signal`: the connection ended. */
  constructor(api: MatrixApi, people: People, userId: string, signal: AbortSignal) {
    this.#api = api;
    this.#people = people;
    this.#userId = userId;
    this.#signal = signal;
  }

  /** Learns names and changes of membership. */
  observe(roomId: string, events: readonly MatrixEvent[]): void {
    for (const { type, state_key: userId, content, unsigned } of events) {
      if (type !== "m.room.member" || userId === undefined) continue;
      const name = nameIn(content);
      if (name !== undefined) this.#names.set(`${roomId} ${userId}`, name);
      const former = userId === this.#userId ? nameIn(unsigned?.prev_content ?? {}) : undefined;
      if (former !== undefined && former !== name) this.#formerNames.set(roomId, former);
      this.#direct.delete(roomId);
    }
  }

  /** The agent's account with the names by which people of a room may call it. */
  me(roomId: string): Me {
    const names = [this.nameOf(roomId, this.#userId), this.#profileName, this.#formerNames.get(roomId)];
    return { userId: this.#userId, names: names.filter((name) => name !== undefined) };
  }

  /** Reads the agent's profile. Homeservers copy a new name into the rooms minutes later, and people see it before. */
  async readProfile(): Promise<void> {
    const profile = await this.#get(path`/client/v3/profile/${this.#userId}`, Profile);
    this.#profileName = nameIn(profile ?? {});
  }

  nameOf(roomId: string, userId: string): string | undefined {
    return this.#names.get(`${roomId} ${userId}`);
  }

  /** Whether at most one other person is in a room that is not a group of the settings. A flag of the inviter proves nothing. */
  async isDirect(roomId: string): Promise<boolean> {
    if (this.#people.groups.includes(roomId)) return false;
    const known = this.#direct.get(roomId);
    if (known !== undefined) return known;
    const found = await this.#get(path`/client/v3/rooms/${roomId}/joined_members`, JoinedMembers);
    if (found === null) return false;
    const isDirect = Object.keys(found.joined).length <= 2;
    this.#direct.set(roomId, isDirect);
    return isDirect;
  }

  /** Learns to which thread an event belongs: once it is redacted, the server no longer says so. */
  rememberThread(roomId: string, event: MatrixEvent): void {
    if (relationOf(event).thread === undefined) return;
    this.#threadRelations.set(`${roomId} ${event.event_id}`, objectOf(event.content["m.relates_to"]));
  }

  /** An event that another one refers to; null when the agent cannot read it. */
  async event(roomId: string, eventId: string): Promise<MatrixEvent | null> {
    const key = `${roomId} ${eventId}`;
    const known = this.#events.get(key);
    if (known !== undefined) return known;
    const found = await this.#get(path`/client/v3/rooms/${roomId}/event/${eventId}`, MatrixEvent);
    const relation = this.#threadRelations.get(key);
    const event =
      found === null || relation === undefined
        ? found
        : { ...found, content: { "m.relates_to": relation, ...found.content } };
    // The agent's own messages are edited while they are written, so they are not cached.
    if (event !== null && event.sender !== this.#userId) this.#events.set(key, event);
    return event;
  }

  /** Joins the groups of the settings that invited the agent before they were listed, or that anybody may join. */
  async joinGroups(log: ChannelHost["log"]): Promise<void> {
    const groups = this.#people.groups.filter((group) => group !== "*");
    if (groups.length === 0) return;
    const joined = await this.#get("/client/v3/joined_rooms", JoinedRooms);
    for (const roomId of groups) {
      if (joined?.joined_rooms.includes(roomId) !== true) await this.#join(roomId, log);
    }
  }

  async answerInvitation(roomId: string, room: InvitedRoom, log: ChannelHost["log"]): Promise<void> {
    const invitation = room.invite_state.events.find(
      ({ type, state_key: userId }) => type === "m.room.member" && userId === this.#userId,
    );
    const inviter = invitation?.sender ?? "";
    if (accepts(this.#people, roomId, inviter, invitation?.content["is_direct"] === true)) {
      await this.#join(roomId, log);
      return;
    }
    log.info(
      { conversation: roomId, by: inviter },
      "invitation ignored: neither the room nor its sender is in the settings",
    );
  }

  /** Says once per room why messages of an encrypted room are not answered. */
  async explainEncryption(roomId: string): Promise<void> {
    if (this.#explained.has(roomId)) return;
    const { groups } = this.#people;
    if (!groups.includes("*") && !groups.includes(roomId) && !(await this.isDirect(roomId))) return;
    const record = path`/client/v3/user/${this.#userId}/rooms/${roomId}/account_data/${noticeType}`;
    if ((await this.#get(record, z.unknown())) === null) {
      // Sent again by another replica, the same transaction id makes it the same message.
      const sent = await this.#put(
        path`/client/v3/rooms/${roomId}/send/m.room.message/${noticeType}`,
        { msgtype: "m.notice", body: encryptedNotice, "m.mentions": {} },
        SentEvent,
      );
      if (sent !== null) await this.#put(record, { event_id: sent.event_id }, z.unknown());
    }
    this.#explained.add(roomId);
  }

  async #join(roomId: string, log: ChannelHost["log"]): Promise<void> {
    const answer = await this.#api({
      method: "POST",
      path: path`/client/v3/join/${roomId}`,
      body: {},
      result: z.unknown(),
      signal: this.#timely(),
    });
    if (answer.kind === "refused")
      log.warn({ conversation: roomId, reason: answer.reason }, "room not joined: invite the agent");
    await resultOrNull(answer, this.#signal);
  }

  async #get<Result>(of: string, result: z.ZodType<Result>): Promise<Result | null> {
    return resultOrNull(await this.#api({ method: "GET", path: of, result, signal: this.#timely() }), this.#signal);
  }

  async #put<Result>(of: string, body: object, result: z.ZodType<Result>): Promise<Result | null> {
    return resultOrNull(
      await this.#api({ method: "PUT", path: of, body, result, signal: this.#timely() }),
      this.#signal,
    );
  }

  #timely(): AbortSignal {
    return withTimeout(this.#signal, requestTimeoutMs);
  }
}

/** Whether an invitation is accepted. Joining gives no rights: every message is authorized. */
export function accepts(people: People, roomId: string, inviter: string, direct: boolean): boolean {
  if (people.groups.includes(roomId) || people.owners.includes(inviter)) return true;
  if (people.groups.includes("*") && !direct) return true;
  if (people.dm_policy === "disabled") return false;
  if (people.allow_from.includes(inviter)) return true;
  return direct && (people.dm_policy === "pairing" || people.dm_policy === "open");
}

function nameIn(content: Readonly<Record<string, unknown>>): string | undefined {
  return shownName(textOf(content["displayname"]));
}
