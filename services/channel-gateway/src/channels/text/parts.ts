// The messages of one answer on a channel: which text begins at a position, in the channel's format. Pure, but for a cache of parsed answers.
import type { TextFormat, TextLimits } from "@parley/contracts";
import { LRUCache } from "lru-cache";
import { withSpoilers, withUrls } from "./render.ts";
import { richTextOf, type RichText } from "./rich-text.ts";
import { markdownSource, sourcePartAt, type MarkdownSource } from "./source-parts.ts";
import { partAt, type TextPart } from "./split.ts";

/** An answer is parsed once, although each of its messages is claimed separately. */
const maxParsed = 32;

export class AnswerParts {
  readonly #limits: TextLimits;
  readonly #parsed = new LRUCache<string, RichText | MarkdownSource>({ max: maxParsed });

  constructor(limits: TextLimits) {
    this.#limits = limits;
  }

  /** The message of `markdown` at a position; null when nothing is left. `key` identifies the answer. */
  at(key: string, markdown: string, position: number, maxLength = this.#limits.maxLength): TextPart | null {
    const { format } = this.#limits;
    const limits = { ...this.#limits, maxLength: Math.min(maxLength, this.#limits.maxLength) };
    const parsed = this.#parse(key, markdown);
    if (format === "markdown" || format === "html") {
      return "source" in parsed ? sourcePartAt(parsed, position, { ...limits, format }) : null;
    }
    return "source" in parsed ? null : partAt(parsed, position, { ...limits, format });
  }

  #parse(key: string, markdown: string): RichText | MarkdownSource {
    const known = this.#parsed.get(key);
    if (known !== undefined) return known;
    const parsed = parsedFor(this.#limits.format, markdown);
    this.#parsed.set(key, parsed);
    return parsed;
  }
}

function parsedFor(format: TextFormat, markdown: string): RichText | MarkdownSource {
  if (format === "markdown" || format === "html") return markdownSource(markdown);
  const rich = richTextOf(markdown);
  // Positions have no place for the address of a link.
  if (format === "ranges") return withSpoilers(withUrls(rich));
  return format === "plain" ? withUrls(rich) : rich;
}
