// Splits Markdown source into messages, for platforms that take Markdown or HTML with blocks. Every message is valid Markdown of its own:
// cuts are between blocks, list items, table rows, code lines and words, never inside emphasis, links or code. A split code block is closed
// and reopened with its language; a split table repeats its head. Positions are UTF-16 units of the source.
import type { TextLimits } from "@parley/contracts";
import type { Nodes, RootContent } from "mdast";
import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { withVisibleDefinitions } from "./definitions.ts";
import { maxUtf16Length, messageLength } from "./measure.ts";
import { render, type RenderedText } from "./render.ts";
import { cleanMarkdown, parseMarkdown, richTextOf } from "./rich-text.ts";
import type { TextPart } from "./split.ts";

export type SourceLimits = TextLimits & { format: "markdown" | "html" };

export interface MarkdownSource {
  source: string;
  /** The top-level blocks; empty for a text that is too complex to parse. */
  blocks: readonly RootContent[];
}

/** Parses Markdown. Never throws: a text that is too complex has no blocks and is split as plain lines. */
export function markdownSource(markdown: string): MarkdownSource {
  const source = cleanMarkdown(markdown).trim();
  return { source, blocks: parseMarkdown(source)?.children ?? [] };
}

/** Returns the message that begins at `from`; null when the rest is empty. */
export function sourcePartAt(document: MarkdownSource, from: number, limits: SourceLimits): TextPart | null {
  const { source, blocks } = document;
  const isInCode = blocks.some((block) => block.type === "code" && startOf(block) < from && from < endOf(block));
  // The indentation of code is part of it.
  const skipped = isInCode ? /^(?:[^\S\n]*\n)*/ : /^\s*/;
  const start = from + (skipped.exec(source.slice(from))?.[0].length ?? 0);
  if (start >= source.length) return null;
  const fits = (text: string): boolean => messageLength(rendered(text, limits), limits) <= limits.maxLength;
  const end = endOfWholeBlocks(document, start, fits) ?? null;
  const inside = blocks.find((block) => startOf(block) <= start && start < endOf(block));
  const cut = end === null ? cutInside(source, start, inside, limits, fits) : { end, text: source.slice(start, end) };
  const rest = source.slice(cut.end).trim() === "";
  return { rendered: rendered(cut.text, limits), next: rest ? null : cut.end };
}

/** The end of the last block such that everything from `start` fits; undefined when `start` is inside a block or its block does not fit. */
function endOfWholeBlocks(
  { source, blocks }: MarkdownSource,
  start: number,
  fits: (text: string) => boolean,
): number | undefined {
  const first = blocks.findIndex((block) => startOf(block) === start);
  if (first === -1) return undefined;
  let end: number | undefined;
  for (const block of blocks.slice(first)) {
    if (!fits(source.slice(start, endOf(block)))) break;
    end = endOf(block);
  }
  return end;
}

interface Cut {
  end: number;
  text: string;
}

function cutInside(
  source: string,
  start: number,
  block: RootContent | undefined,
  limits: SourceLimits,
  fits: (text: string) => boolean,
): Cut {
  const end = block === undefined ? source.length : endOf(block);
  const blockStart = block === undefined ? start : startOf(block);
  // What a message repeats of its block leaves at least a quarter for the rest; otherwise the block is cut like text.
  const room = "x".repeat(Math.ceil(limits.maxLength / 4));
  if (block?.type === "code") {
    const [open = "", fence = ""] = /^ *(`{3,}|~{3,})[^\n]*/.exec(source.slice(blockStart)) ?? [];
    const wrap = (body: string): string => `${open}\n${body.replace(/\n$/, "")}\n${fence}`;
    if (fence !== "" && fits(wrap(room))) {
      const from = start === blockStart ? start + open.length + 1 : start;
      const close = source.slice(0, end).trimEnd().endsWith(fence) ? source.lastIndexOf(fence, end) : end;
      const cut = longest(source, from, close, (text) => fits(wrap(text)), [], limits);
      return { end: cut >= close ? end : cut, text: wrap(source.slice(from, cut)) };
    }
  }
  if (block?.type === "table") {
    const head = source.slice(blockStart).split("\n").slice(0, 2).join("\n");
    if (fits(`${head}\n${room}`)) {
      const from = start === blockStart ? start + head.length + 1 : start;
      const cut = longest(source, from, end, (text) => fits(`${head}\n${text}`), [], limits);
      return { end: cut, text: `${head}\n${source.slice(from, cut).trimEnd()}` };
    }
  }
  const isText = block === undefined || block.type === "code" || block.type === "table";
  const kept = isText ? [] : protectedSpans(block);
  const cut = longest(source, start, end, fits, kept, limits);
  return { end: cut, text: source.slice(start, cut).trimEnd() };
}

/** Boundaries from the best to the worst: paragraph, line, sentence, word. */
const boundaries = [/\n{2,}/g, /\n/g, /[.!?…:;。！？]["'”’)\]]*\s/gu, /\s/g];

/** The end of the longest text from `from` that fits, at the best boundary that leaves it at least half full, outside of `kept`. */
function longest(
  source: string,
  from: number,
  end: number,
  fits: (text: string) => boolean,
  kept: readonly (readonly [number, number])[],
  { maxLength, lengthUnit }: SourceLimits,
): number {
  if (fits(source.slice(from, end))) return end;
  let low = from;
  let high = Math.min(end, from + maxUtf16Length(maxLength, lengthUnit));
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(source.slice(from, middle))) low = middle;
    else high = middle - 1;
  }
  const window = source.slice(from, low);
  const isInside = (at: number): boolean => kept.some(([first, last]) => first < at && at < last);
  for (const boundary of boundaries) {
    const cuts = [...window.matchAll(boundary)].map((match) => from + match.index + match[0].length);
    const best = cuts.findLast((at) => at - from >= (low - from) / 2 && !isInside(at));
    if (best !== undefined) return best;
  }
  const spanStart = kept.find(([first, last]) => first < low && low < last)?.[0];
  if (spanStart !== undefined && spanStart > from) return spanStart;
  // A span that is longer than a message is cut like text.
  const at = Math.max(low, from + 1);
  return /[\uDC00-\uDFFF]/.test(source.charAt(at)) && at - 1 > from ? at - 1 : at;
}

const protectedTypes: ReadonlySet<string> = new Set([
  "strong",
  "emphasis",
  "delete",
  "inlineCode",
  "link",
  "linkReference",
  "image",
  "imageReference",
  "code",
  "table",
  "html",
]);

/** The source of inline formatting and nested blocks, outermost first. */
function protectedSpans(node: Nodes): (readonly [number, number])[] {
  if (protectedTypes.has(node.type)) return [[startOf(node), endOf(node)]];
  return "children" in node ? node.children.flatMap(protectedSpans) : [];
}

function startOf(node: Nodes): number {
  return node.position?.start.offset ?? 0;
}

function endOf(node: Nodes): number {
  return node.position?.end.offset ?? 0;
}

function rendered(markdown: string, { format }: SourceLimits): RenderedText {
  if (format === "markdown") return { text: markdown, plain: markdown, ranges: [] };
  const rich = richTextOf(markdown);
  // A text that is too complex to parse is shown as it is.
  const tree = parseMarkdown(markdown);
  const text =
    tree === null
      ? `<p>${render({ text: markdown, ranges: [] }, "inline_html").text}</p>`
      : picturesAsLinks(
          micromark(withVisibleDefinitions(markdown, tree), { extensions: [gfm()], htmlExtensions: [gfmHtml()] }),
        );
  return { text: withLineBreaks(text), plain: rich.text, ranges: rich.ranges };
}

const blockTag = String.raw`<\/?(?:p|h[1-6]|ul|ol|li|blockquote|pre|table|thead|tbody|tr|th|td|hr|br)\b[^>]*>`;
const lineBreak = new RegExp(String.raw`(?<!${blockTag})\n(?!${blockTag}|$)`, "g");

/** Lines of a paragraph stay lines, as on every other channel: the result of a command has one on each. */
function withLineBreaks(page: string): string {
  const pieces = page.split(/(<pre>[^]*?<\/pre>)/);
  return pieces.map((piece, index) => (index % 2 === 1 ? piece : piece.replace(lineBreak, "<br />\n"))).join("");
}

/** A mail program loads pictures, and an address could carry private text. The only HTML tags in the page are those of the parser. */
function picturesAsLinks(page: string): string {
  return page.replace(
    /<img src="([^"]*)" alt="([^"]*)"(?: title="[^"]*")? \/>/g,
    (_, address: string, label: string) => `<a href="${address}">${label === "" ? address : label}</a>`,
  );
}
