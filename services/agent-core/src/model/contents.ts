// The contents that a prompt's attachments refer to: fetched from the store by their hashes, the ones used last kept in memory.
import { fetchBlob, type Bus } from "@parley/bus";
import { WireError, type Attachment, type Part } from "@parley/contracts";
import { shownKind } from "./attachments.ts";
import type { PromptMessage } from "./provider.ts";

/** Content of one prompt: base64 of it stays below what a provider takes in one request. */
const promptBytes = 20 * 1024 * 1024;
/** Base64 characters kept over calls: two full prompts. */
const cacheCharacters = 64 * 1024 * 1024;

/** What of a prompt's attachments is to be shown, newest first until the prompt is full; pure. Each content once. */
export function contentsToShow(messages: readonly PromptMessage[], maxBytes = promptBytes): string[] {
  const chosen = new Set<string>();
  let left = maxBytes;
  for (const message of messages.toReversed()) {
    for (const { sha256, mediaType, bytes } of message.parts.toReversed().flatMap(attachmentsOf)) {
      if (chosen.has(sha256) || shownKind(mediaType, bytes) === "note") continue;
      // What is older is not shown either, so that a prompt that grows loses its attachments from one end only.
      if (bytes > left) return [...chosen];
      left -= bytes;
      chosen.add(sha256);
    }
  }
  return [...chosen];
}

function attachmentsOf(part: Part): Attachment[] {
  if (part.type === "blob") return [part];
  return part.type === "tool_result" ? (part.attachments ?? []).toReversed() : [];
}

export class Contents {
  readonly #bus: Bus;
  /** Base64 by hash, least recently used first. */
  readonly #kept = new Map<string, string>();
  #characters = 0;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Base64 by hash. What the store does not have is left out; throws its WireError when it cannot be asked. */
  async of(messages: readonly PromptMessage[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const sha256 of contentsToShow(messages)) {
      const data = await this.#get(sha256);
      if (data !== undefined) found.set(sha256, data);
    }
    return found;
  }

  async #get(sha256: string): Promise<string | undefined> {
    const kept = this.#kept.get(sha256);
    if (kept !== undefined) {
      this.#kept.delete(sha256);
      this.#kept.set(sha256, kept);
      return kept;
    }
    try {
      const data = (await fetchBlob(this.#bus, sha256)).toString("base64");
      this.#keep(sha256, data);
      return data;
    } catch (error) {
      if (WireError.is(error, "NOT_FOUND", "INTERNAL")) return undefined;
      throw error;
    }
  }

  #keep(sha256: string, data: string): void {
    if (this.#kept.has(sha256)) return;
    this.#kept.set(sha256, data);
    this.#characters += data.length;
    for (const [oldest, content] of this.#kept) {
      if (this.#characters <= cacheCharacters) return;
      this.#kept.delete(oldest);
      this.#characters -= content.length;
    }
  }
}
