// Renders text with ranges in the formats that platforms accept. Pure.
import type { TextFormat } from "@parley/contracts";
import type { Range, RichText } from "./rich-text.ts";

/** One message as an adapter sends it. */
export interface RenderedText {
  /** In the channel's format. */
  text: string;
  /** Without markup: for platforms that show both, and when a platform refuses the markup. */
  plain: string;
  /** Styled ranges of `plain`, in UTF-16 units. */
  ranges: readonly Range[];
}

/** The formats that are rendered from ranges. */
export type RangeFormat = Exclude<TextFormat, "markdown" | "html">;

export function render(rich: RichText, format: RangeFormat): RenderedText {
  return { text: renderers[format](rich), plain: rich.text, ranges: rich.ranges };
}

const renderers: Record<RangeFormat, (rich: RichText) => string> = {
  plain: ({ text }) => text,
  ranges: ({ text }) => text,
  inline_html: (rich) => marked(rich, { escape: escapeHtml, tags: htmlTags, quote: null }),
  mrkdwn: (rich) =>
    marked(rich, { escape: escapeEntities, tags: asteriskTags((url) => [`<${url}|`, ">"]), quote: "> " }),
  single_asterisk: asterisks,
  message_styling: ({ text, ranges }) => asterisks({ text, ranges: seenBySpans(text, ranges) }),
};

function asterisks({ text, ranges }: RichText): string {
  // Clients make links of addresses themselves.
  const shown = ranges.filter(
    (range) => range.type !== "link" || !isAddress(text.slice(range.start, range.end), range.url),
  );
  const tags = asteriskTags((url) => ["", ` (${url})`]);
  return marked({ text, ranges: shown }, { escape: (each) => each, tags, quote: "> " });
}

/**
 * The ranges whose marks the rules of XEP-0393 see as a span: it begins after white space or another opening mark, is within one line, has
 * no white space at its ends, and does not contain its own mark. https://xmpp.org/extensions/xep-0393.html
 */
function seenBySpans(text: string, ranges: readonly Range[]): Range[] {
  const openedAt = new Set<number>();
  return ranges.filter((range) => {
    const { type, start, end } = range;
    if (type === "link" || type === "pre" || type === "blockquote") return true;
    const content = text.slice(start, end);
    const begins = start === 0 || /\s/.test(text.charAt(start - 1)) || openedAt.has(start);
    const isSpan = begins && /^\S(?:.*\S)?$/u.test(content) && !content.includes(marks[type] || "\n");
    if (isSpan && marks[type] !== "") openedAt.add(start);
    return isSpan;
  });
}

interface Markup {
  escape: (text: string) => string;
  /** What opens and closes a range; a range of a quote is `tags` or the prefix of its lines. */
  tags: (range: Range) => readonly [string, string];
  /** The prefix of each quoted line; null: quotes have tags. */
  quote: string | null;
}

/** Ranges are nested or disjoint, so each closes before the one that contains it. */
function marked({ text, ranges }: RichText, { escape, tags, quote }: Markup): string {
  let out = "";
  let at = 0;
  const open: Range[] = [];
  const quoted = (): boolean => quote !== null && open.some(({ type }) => type === "blockquote");
  const upTo = (position: number): void => {
    const piece = escape(text.slice(at, position));
    out += quoted() ? piece.replaceAll("\n", `\n${quote}`) : piece;
    at = position;
  };
  const tagsOf = (range: Range): readonly [string, string] =>
    range.type === "blockquote" && quote !== null ? [quote, ""] : tags(range);
  const closeUntil = (position: number): void => {
    for (let range = open.at(-1); range !== undefined && range.end <= position; range = open.at(-1)) {
      upTo(range.end);
      out += tagsOf(range)[1];
      open.pop();
    }
  };
  for (const range of ranges) {
    closeUntil(range.start);
    // No platform allows formatting inside code.
    if (open.some(({ type }) => type === "pre" || type === "code")) continue;
    upTo(range.start);
    out += tagsOf(range)[0];
    open.push(range);
  }
  closeUntil(text.length);
  upTo(text.length);
  return out;
}

const simpleTags = {
  bold: "b",
  italic: "i",
  strikethrough: "s",
  spoiler: "tg-spoiler",
  code: "code",
  blockquote: "blockquote",
} as const;

function htmlTags(range: Range): readonly [string, string] {
  if (range.type === "link") return [`<a href="${escapeHtml(range.url)}">`, "</a>"];
  if (range.type === "pre") {
    return range.language === null
      ? ["<pre>", "</pre>"]
      : [`<pre><code class="language-${escapeHtml(range.language)}">`, "</code></pre>"];
  }
  const tag = simpleTags[range.type];
  return [`<${tag}>`, `</${tag}>`];
}

const marks = { bold: "*", italic: "_", strikethrough: "~", spoiler: "", code: "`", blockquote: "" } as const;

function asteriskTags(link: (url: string) => readonly [string, string]): Markup["tags"] {
  return (range) => {
    if (range.type === "link") return link(range.url);
    if (range.type === "pre") return ["```\n", "\n```"];
    return [marks[range.type], marks[range.type]];
  };
}

function escapeEntities(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function escapeHtml(text: string): string {
  return escapeEntities(text).replaceAll('"', "&quot;");
}

/** Whether the label of a link is its address. */
function isAddress(label: string, url: string): boolean {
  return label === url || `mailto:${label}` === url || /^https?:\/\/$/.test(url.replace(label, ""));
}

/** The text in which the URL of a link follows its label. The label keeps its other ranges; the URL has none. */
export function withUrls({ text, ranges }: RichText): RichText {
  let plain = "";
  let at = 0;
  const inserted: { at: number; length: number }[] = [];
  const links = ranges.flatMap((range) => (range.type === "link" ? [range] : []));
  for (const { start, end, url } of links.toSorted((left, right) => left.end - right.end)) {
    plain += text.slice(at, end);
    at = end;
    const label = text.slice(start, end);
    if (isAddress(label, url)) continue;
    const address = ` (${url})`;
    plain += address;
    inserted.push({ at: end, length: address.length });
  }
  const moved = (position: number, isEnd: boolean): number =>
    position +
    inserted.reduce((sum, each) => ((isEnd ? each.at < position : each.at <= position) ? sum + each.length : sum), 0);
  return {
    text: plain + text.slice(at),
    ranges: ranges
      .filter(({ type }) => type !== "link")
      .map((range) => ({ ...range, start: moved(range.start, false), end: moved(range.end, true) })),
  };
}

/** The text without the marks of `||hidden||` texts, which become ranges. Marks in code stay, and marks that cross other ranges. */
export function withSpoilers({ text, ranges }: RichText): RichText {
  const spoilers = [...text.matchAll(/\|\|(?=\S)[^]{1,1000}?(?<=\S)\|\|/g)]
    .map((match) => ({ start: match.index, end: match.index + match[0].length }))
    .filter((spoiler) =>
      ranges.every((range) => mayContain(range, spoiler) || mayContain(spoiler, range, spoilerMark)),
    );
  const cuts = spoilers.flatMap(({ start, end }) => [start, end - spoilerMark]);
  const moved = (position: number): number =>
    position - cuts.reduce((sum, cut) => sum + Math.min(spoilerMark, Math.max(0, position - cut)), 0);
  const hidden = spoilers.map(({ start, end }) => ({ type: "spoiler" as const, start, end }));
  return {
    text: cuts.reduceRight((rest, cut) => rest.slice(0, cut) + rest.slice(cut + spoilerMark), text),
    ranges: [...ranges, ...hidden]
      .toSorted((left, right) => left.start - right.start || right.end - left.end)
      .map((range) => ({ ...range, start: moved(range.start), end: moved(range.end) }))
      .filter((range) => range.end > range.start),
  };
}

const spoilerMark = "||".length;

/** Whether `inner` is inside `outer`, without its marks, or apart from it. Code contains nothing. */
function mayContain(
  outer: { start: number; end: number; type?: Range["type"] },
  inner: { start: number; end: number },
  markLength = 0,
): boolean {
  if (inner.end <= outer.start || outer.end <= inner.start) return true;
  if (outer.type === "code" || outer.type === "pre") return false;
  return outer.start + markLength <= inner.start && inner.end <= outer.end - markLength;
}
