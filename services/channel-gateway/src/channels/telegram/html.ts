// Converts text with ranges to Telegram's HTML. Pure. Telegram's length limits apply to the text, not to the HTML.
import type { Range, RichText } from "../text/rich-text.ts";

/** Returns HTML for `parse_mode: "HTML"`. */
export function htmlOf({ text, ranges }: RichText): string {
  let html = "";
  let at = 0;
  const open: Range[] = [];
  const upTo = (position: number): void => {
    html += escape(text.slice(at, position));
    at = position;
  };
  const closeUntil = (position: number): void => {
    for (let range = open.at(-1); range !== undefined && range.end <= position; range = open.at(-1)) {
      upTo(range.end);
      html += tagsOf(range)[1];
      open.pop();
    }
  };
  for (const range of ranges) {
    closeUntil(range.start);
    // Telegram allows no formatting inside code.
    if (open.some(({ type }) => type === "pre" || type === "code")) continue;
    upTo(range.start);
    html += tagsOf(range)[0];
    open.push(range);
  }
  closeUntil(text.length);
  upTo(text.length);
  return html;
}

const simpleTags = { bold: "b", italic: "i", strikethrough: "s", code: "code", blockquote: "blockquote" } as const;

function tagsOf(range: Range): [string, string] {
  if (range.type === "link") return [`<a href="${escape(range.url)}">`, "</a>"];
  if (range.type === "pre") {
    return range.language === null
      ? ["<pre>", "</pre>"]
      : [`<pre><code class="language-${escape(range.language)}">`, "</code></pre>"];
  }
  const tag = simpleTags[range.type];
  return [`<${tag}>`, `</${tag}>`];
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
