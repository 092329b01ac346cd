// Extracts reasoning that a local model writes between `<think>` and `</think>` in its text; pure. Only tags at the
// start of an answer count: later ones are part of the text.
import type { TextDelta } from "./provider.ts";

const tags = [
  { open: "<think>", close: "</think>" },
  { open: "<thinking>", close: "</thinking>" },
] as const;

/** Processes text incrementally; tags may be split anywhere. */
export class ThinkTags {
  /** Text that may still become a tag. */
  #held = "";
  /** The closing tag of open reasoning; undefined: none is open. */
  #close: string | undefined;
  /** The answer has started: tags are no longer parsed. */
  #begun = false;
  /** There was reasoning: blank lines after it are not part of the answer. */
  #thought = false;

  push(text: string): TextDelta[] {
    if (this.#begun) return deltas("text", text);
    this.#held += text;
    return this.#read();
  }

  /** The rest at the end of the answer. */
  end(): TextDelta[] {
    const rest = this.#thought && this.#close === undefined ? this.#held.trimStart() : this.#held;
    this.#held = "";
    return deltas(this.#close === undefined ? "text" : "reasoning", rest);
  }

  #read(): TextDelta[] {
    return this.#close === undefined ? this.#readStart() : this.#readThinking(this.#close);
  }

  #readStart(): TextDelta[] {
    const start = this.#held.trimStart();
    const tag = tags.find(({ open }) => start.startsWith(open));
    if (tag !== undefined) {
      this.#close = tag.close;
      this.#thought = true;
      this.#held = start.slice(tag.open.length).replace(/^\n/, "");
      return this.#read();
    }
    if (tags.some(({ open }) => open.startsWith(start))) return [];
    this.#begun = true;
    return this.end();
  }

  #readThinking(close: string): TextDelta[] {
    const at = this.#held.indexOf(close);
    if (at < 0) {
      // All but a possible start of the closing tag.
      const kept = overlap(this.#held, close);
      const shown = this.#held.slice(0, this.#held.length - kept);
      this.#held = this.#held.slice(shown.length);
      return deltas("reasoning", shown);
    }
    const thought = this.#held.slice(0, at);
    this.#close = undefined;
    this.#held = this.#held.slice(at + close.length);
    return [...deltas("reasoning", thought), ...this.#read()];
  }
}

/**
 * Splits a whole text whose opening tag was in the server's template: the closing tag is alone on a line, with
 * reasoning before it. Undefined without such a tag.
 */
export function splitOrphan(text: string): { reasoning: string; text: string } | undefined {
  const match = /^<\/think(?:ing)?>[ \t]*$/m.exec(text);
  if (match === null || /<think(ing)?>/.test(text.slice(0, match.index))) return undefined;
  return { reasoning: text.slice(0, match.index).trim(), text: text.slice(match.index + match[0].length).trimStart() };
}

function deltas(type: TextDelta["type"], text: string): TextDelta[] {
  return text === "" ? [] : [{ type, text }];
}

/** How many characters at the end of a text are a prefix of `word`. */
function overlap(text: string, word: string): number {
  let length = Math.min(text.length, word.length - 1);
  while (length > 0 && !word.startsWith(text.slice(-length))) length -= 1;
  return length;
}
