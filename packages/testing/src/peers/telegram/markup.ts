// Parses Telegram's HTML as the Bot API does. Returns the text without its tags, or the error text of Telegram.

export type Markup = { ok: true; text: string; entities: MarkupEntity[] } | { ok: false; description: string };

export interface MarkupEntity {
  type: string;
  /** In UTF-16 code units. */
  offset: number;
  length: number;
  url?: string;
  language?: string;
}

const types: Record<string, string> = {
  b: "bold",
  strong: "bold",
  i: "italic",
  em: "italic",
  u: "underline",
  ins: "underline",
  s: "strikethrough",
  strike: "strikethrough",
  del: "strikethrough",
  "tg-spoiler": "spoiler",
  code: "code",
  pre: "pre",
  a: "text_link",
  blockquote: "blockquote",
};
const characters: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"' };

interface Open {
  tag: string;
  offset: number;
  url?: string;
  language?: string;
}

function refused(problem: string): Markup {
  return { ok: false, description: `Bad Request: can't parse entities: ${problem}` };
}

export function readHtml(html: string): Markup {
  const entities: MarkupEntity[] = [];
  const open: Open[] = [];
  let text = "";
  let at = 0;
  const byteOffset = (position: number): number => Buffer.byteLength(html.slice(0, position));

  while (at < html.length) {
    const character = html.charAt(at);
    if (character === "&") {
      const reference = readReference(html.slice(at, at + 12));
      text += reference.text;
      at += reference.length;
      continue;
    }
    if (character !== "<") {
      text += character;
      at += 1;
      continue;
    }
    const end = html.indexOf(">", at);
    if (end === -1) return refused(`Unclosed start tag at byte offset ${byteOffset(at)}`);
    const [, slash = "", tag = "", attributes = ""] =
      /^<(\/?)([a-z0-9-]*)\s*([^]*)>$/i.exec(html.slice(at, end + 1)) ?? [];
    const name = tag.toLowerCase();
    if (slash === "") {
      const attribute = (key: string): string | undefined =>
        new RegExp(`(?:^|\\s)${key}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`, "i")
          .exec(attributes)
          ?.slice(1)
          .find((value) => value !== undefined);
      const known = name === "span" ? attribute("class") === "tg-spoiler" : name in types;
      if (!known) return refused(`Unsupported start tag "${name}" at byte offset ${byteOffset(at)}`);
      if (name === "blockquote" && open.some((outer) => outer.tag === name)) {
        return refused(`Can't nest blockquote at byte offset ${byteOffset(at)}`);
      }
      const url = attribute("href");
      const language = /^language-(.+)$/.exec(attribute("class") ?? "")?.[1];
      open.push({
        tag: name,
        offset: text.length,
        ...(url === undefined ? {} : { url: url.replaceAll("&quot;", '"').replaceAll("&amp;", "&") }),
        ...(language === undefined ? {} : { language }),
      });
    } else {
      const last = open.pop();
      if (last === undefined) return refused(`Unexpected end tag at byte offset ${byteOffset(at)}`);
      if (name !== "" && last.tag !== name) {
        return refused(
          `Unmatched end tag at byte offset ${byteOffset(at)}, expected "</${last.tag}>", found "</${name}>"`,
        );
      }
      close(last, open, entities, text.length);
    }
    at = end + 1;
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined) return refused(`Can't find end tag corresponding to start tag "${unclosed.tag}"`);
  return { ok: true, text, entities: entities.toSorted((a, b) => a.offset - b.offset || b.length - a.length) };
}

/** Decodes a character reference such as `&lt;` or `&#33;`; any other ampersand is literal. */
function readReference(from: string): { text: string; length: number } {
  const [whole = "&", digits, name = ""] = /^&(?:#(\d+|x[0-9a-f]+)|([a-z]+));/i.exec(from) ?? [];
  if (digits === undefined) return { text: characters[name] ?? whole, length: whole.length };
  const number = /^x/i.test(digits) ? Number.parseInt(digits.slice(1), 16) : Number(digits);
  return { text: String.fromCodePoint(number), length: whole.length };
}

function close(tag: Open, open: readonly Open[], entities: MarkupEntity[], end: number): void {
  const length = end - tag.offset;
  if (length === 0) return;
  const outer = open.at(-1);
  if (tag.tag === "code" && outer?.tag === "pre" && outer.offset === tag.offset) {
    // `<pre><code class="language-x">` is one entity, a code block with a language.
    if (tag.language !== undefined) outer.language = tag.language;
    return;
  }
  entities.push({
    type: types[tag.tag] ?? "spoiler",
    offset: tag.offset,
    length,
    ...(tag.url === undefined ? {} : { url: tag.url }),
    ...(tag.tag === "pre" && tag.language !== undefined ? { language: tag.language } : {}),
  });
}
