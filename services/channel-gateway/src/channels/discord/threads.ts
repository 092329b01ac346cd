// Which channel contains a thread: messages of a thread name only the thread itself.
import { LRUCache } from "lru-cache";
import { resultOf } from "../outcome.ts";
import type { Call } from "./api.ts";
import { Channel, type Place } from "./schema.ts";

const maxKnown = 5_000;
const lookUpWithinMs = 5_000;
/** Threads of announcement channels, public and private threads. */
const threadTypes: ReadonlySet<number> = new Set([10, 11, 12]);

export class Threads {
  readonly #call: Call;
  readonly #groups: ReadonlySet<string>;
  /** The parent of a thread; "" for other channels. */
  readonly #parents = new LRUCache<string, string>({ max: maxKnown });

  constructor(call: Call, groups: readonly string[]) {
    this.#call = call;
    this.#groups = new Set(groups);
  }

  /** Remembers a channel that Discord has described. */
  learn(data: unknown): void {
    const { data: channel } = Channel.safeParse(data);
    if (channel !== undefined) this.#parents.set(channel.id, parentOf(channel));
  }

  /** The parent of a thread; null for any other channel. Rejects when Discord cannot be reached: the group decides who may write. */
  async parent(place: Place): Promise<string | null> {
    const { channel_id: id, guild_id: guildId, channel_type: type } = place;
    if (guildId === undefined || this.#groups.size === 0 || this.#groups.has(id)) return null;
    if (type !== undefined && !threadTypes.has(type)) return null;
    let parent = this.#parents.get(id);
    if (parent === undefined) {
      parent = await this.#lookUp(id);
      this.#parents.set(id, parent);
    }
    return parent === "" ? null : parent;
  }

  async #lookUp(id: string): Promise<string> {
    const answer = await this.#call(
      { method: "GET", path: `/channels/${id}` },
      Channel,
      AbortSignal.timeout(lookUpWithinMs),
    );
    // A channel that the bot cannot see is no thread of a group.
    if (answer.kind === "refused" && (answer.status === 403 || answer.status === 404)) return "";
    return parentOf(resultOf(answer, "Discord"));
  }
}

function parentOf({ type, parent_id: parent }: Channel): string {
  return threadTypes.has(type) ? (parent ?? "") : "";
}
