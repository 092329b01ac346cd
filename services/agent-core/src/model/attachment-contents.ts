// The contents of a prompt's attachments: fetched from the store by hash, the most recently used ones cached in memory.
import { fetchBlob, type Bus } from "@parley/bus";
import { WireError, type Attachment, type Part } from "@parley/contracts";
import { shownKind } from "./render-attachment.ts";
import type { PromptMessage } from "./provider.ts";

/** Attachment bytes per prompt: as base64 they stay below the providers' request limit. */
const promptBytes = 20 * 1024 * 1024;
/** Base64 characters cached across calls: two full prompts. */
const cacheCharacters = 64 * 1024 * 1024;

/** Which of a prompt's attachments to show, newest first until the prompt is full; pure. Each content once. */
export function selectContents(messages: readonly PromptMessage[], maxBytes = promptBytes): string[] {
  const chosen = new Set<string>();
  let left = maxBytes;
  const shown = messages.filter(({ parts }) => parts.some(mayHaveAttachments));
  for (const message of shown.toReversed()) {
    for (const { sha256, mediaType, bytes } of message.parts.toReversed().flatMap(attachmentsOf)) {
      if (chosen.has(sha256) || shownKind(mediaType, bytes) === "note") continue;
      // Older ones are omitted too, so that a growing prompt loses attachments from its start only.
      if (bytes > left) return [...chosen];
      left -= bytes;
      chosen.add(sha256);
    }
  }
  return [...chosen];
}

function mayHaveAttachments(part: Part): boolean {
  return part.type === "blob" || (part.type === "tool_result" && part.attachments !== undefined);
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

  /**
   * Base64 by hash, without contents that the store does not have. Throws the WireError when the store does not
   * respond.
   */
  async of(messages: readonly PromptMessage[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const sha256 of selectContents(messages)) {
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
