// A person on a Matrix homeserver: the client API over fetch, one request a method. It shares no code with the adapter.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

/** An event of a room's timeline as the person sees it. */
export interface MatrixEvent {
  event_id: string;
  type: string;
  sender: string;
  content: Record<string, unknown>;
  redacts?: string;
}

export interface RoomOptions {
  /** User ids. */
  invite?: readonly string[];
  /** The invitation is for a conversation with one person. */
  direct?: boolean;
  encrypted?: boolean;
}

export class MatrixPerson {
  readonly url: string;
  readonly userId: string;
  readonly token: string;

  constructor(url: string, userId: string, token: string) {
    this.url = url;
    this.userId = userId;
    this.token = token;
  }

  /** Calls the client API below `/_matrix/client/v3`, or another path that begins with `/_matrix`. Throws with the server's answer. */
  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}${path.startsWith("/_matrix") ? "" : "/_matrix/client/v3"}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }

  async createRoom({ invite = [], direct = false, encrypted = false }: RoomOptions = {}): Promise<string> {
    const algorithm = { type: "m.room.encryption", state_key: "", content: { algorithm: "m.megolm.v1.aes-sha2" } };
    const { room_id: roomId } = await this.call("POST", "/createRoom", {
      preset: "private_chat",
      invite,
      is_direct: direct,
      initial_state: encrypted ? [algorithm] : [],
    });
    return String(roomId);
  }

  async invite(roomId: string, userId: string): Promise<void> {
    await this.call("POST", `/rooms/${encodeURIComponent(roomId)}/invite`, { user_id: userId });
  }

  async join(roomId: string): Promise<void> {
    await this.call("POST", `/join/${encodeURIComponent(roomId)}`, {});
  }

  async members(roomId: string): Promise<string[]> {
    const { joined } = await this.call("GET", `/rooms/${encodeURIComponent(roomId)}/joined_members`);
    return Object.keys(joined as object);
  }

  /** Resolves when a user has joined. */
  async untilJoined(roomId: string, userId: string): Promise<void> {
    while (!(await this.members(roomId)).includes(userId)) await delay(50);
  }

  /** Changes the display name; resolves when the room's members see it, because Synapse updates rooms later. */
  async rename(name: string, roomId: string): Promise<void> {
    await this.call("PUT", `/profile/${this.userId}/displayname`, { displayname: name });
    const member = `/rooms/${encodeURIComponent(roomId)}/state/m.room.member/${this.userId}`;
    while ((await this.call("GET", member))["displayname"] !== name) await delay(20);
  }

  /** Sends an event of any type; returns its id. */
  async send(roomId: string, type: string, content: object): Promise<string> {
    const path = `/rooms/${encodeURIComponent(roomId)}/send/${type}/${randomUUID()}`;
    return String((await this.call("PUT", path, content))["event_id"]);
  }

  say(roomId: string, body: string, more: object = {}): Promise<string> {
    return this.send(roomId, "m.room.message", { msgtype: "m.text", body, ...more });
  }

  async redact(roomId: string, eventId: string): Promise<string> {
    const path = `/rooms/${encodeURIComponent(roomId)}/redact/${encodeURIComponent(eventId)}/${randomUUID()}`;
    return String((await this.call("PUT", path, {}))["event_id"]);
  }

  /** Uploads a file; returns its `mxc:` address. */
  async upload(content: Uint8Array, mediaType: string): Promise<string> {
    const response = await fetch(`${this.url}/_matrix/media/v3/upload`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.token}`, "content-type": mediaType },
      body: Buffer.from(content),
    });
    return ((await response.json()) as { content_uri: string }).content_uri;
  }

  async download(mxc: string): Promise<Buffer> {
    const response = await fetch(`${this.url}/_matrix/client/v1/media/download/${mxc.slice("mxc://".length)}`, {
      headers: { authorization: `Bearer ${this.token}` },
    });
    if (!response.ok) throw new Error(`download ${mxc}: ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  }

  /** The events of a room, oldest first. */
  async events(roomId: string): Promise<MatrixEvent[]> {
    const path = `/rooms/${encodeURIComponent(roomId)}/messages?dir=b&limit=500`;
    const { chunk } = await this.call("GET", path);
    return (chunk as MatrixEvent[]).toReversed();
  }

  /** The messages of one sender in a room, oldest first; edits are separate events. */
  async messagesOf(roomId: string, sender: string): Promise<MatrixEvent[]> {
    const events = await this.events(roomId);
    return events.filter((event) => event.sender === sender && event.type === "m.room.message");
  }

  /** Resolves with the messages of a sender when there are at least `count`. */
  async untilMessages(roomId: string, sender: string, count: number): Promise<MatrixEvent[]> {
    for (;;) {
      const messages = await this.messagesOf(roomId, sender);
      if (messages.length >= count) return messages;
      await delay(50);
    }
  }

  /** Who is shown as typing in a room; waits up to `timeoutMs` for a change. */
  async typing(roomId: string, since?: string, timeoutMs = 0): Promise<{ userIds: string[]; next: string }> {
    const filter = JSON.stringify({ room: { rooms: [roomId], timeline: { types: [] }, state: { types: [] } } });
    const query = new URLSearchParams({
      filter,
      timeout: String(timeoutMs),
      ...(since === undefined ? {} : { since }),
    });
    const answer = (await this.call("GET", `/sync?${query.toString()}`)) as {
      next_batch: string;
      rooms?: {
        join?: Record<string, { ephemeral?: { events: { type: string; content: { user_ids: string[] } }[] } }>;
      };
    };
    const events = answer.rooms?.join?.[roomId]?.ephemeral?.events ?? [];
    const shown = events.findLast(({ type }) => type === "m.typing");
    return { userIds: shown?.content.user_ids ?? [], next: answer.next_batch };
  }
}
