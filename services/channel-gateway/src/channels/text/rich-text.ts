// Converts Markdown to plain text with styled ranges (bold, code, link …) through a syntax tree. Independent of platforms, their markup
// and their length limits.
import type { Definition, Nodes, Parents, PhrasingContent, Root, RootContent, Table } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { withVisibleDefinitions } from "./definitions.ts";

type Style =
  | { type: "bold" | "italic" | "strikethrough" | "spoiler" | "code" | "blockquote" }
  | { type: "pre"; language: string | null }
  | { type: "link"; url: string };

/** A styled range, in UTF-16 units of the text. Ranges of one text are nested or disjoint, never partially overlapping. */
export type Range = Style & { start: number; end: number };

/** A block with more emphasis marks than this is not parsed as Markdown. */
const mostMarks = 3_000;
/** Opening brackets in a text that is parsed; with as many the parser needs 0.4 s. */
const mostBrackets = 1_000;

export interface RichText {
  text: string;
  /** Outer ranges come before the ranges inside them. */
  ranges: Range[];
}

/** Converts Markdown to text with ranges. Never throws: input that is too complex or too deeply nested stays unchanged. */
export function richTextOf(markdown: string): RichText {
  const source = cleanMarkdown(markdown);
  try {
    const parsed = parseMarkdown(source);
    const shown = parsed === null ? source : withVisibleDefinitions(source, parsed);
    const tree = shown === source ? parsed : parseMarkdown(shown);
    if (tree !== null) return new Writer(definitionsIn(tree)).write(tree);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return { text: source.trim(), ranges: [] };
}

/** The syntax tree of cleaned Markdown; null when it is too complex or too deeply nested. */
export function parseMarkdown(source: string): Root | null {
  if (isTangled(source)) return null;
  try {
    return fromMarkdown(source, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/**
 * The parser's time grows with the square of the emphasis marks in one paragraph, of the opening brackets and of the depth of quotes:
 * 80 kB of emphasis marks would block the process for half a minute, 64 kB of `[a](` for a quarter.
 */
function isTangled(source: string): boolean {
  if (/^(?:[ \t]*>){50}/m.test(source) || source.replace(/[^[]/g, "").length > mostBrackets) return true;
  return source
    .split(/\n[ \t]*\n/)
    .some((block) => block.length > mostMarks && block.replace(/[^*_~]/g, "").length > mostMarks);
}

/** Removes characters that chat platforms refuse: lone surrogates and control characters other than tab and line feed. */
export function cleanMarkdown(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/(?![\t\n])\p{Cc}/gu, "");
}

function definitionsIn(node: Nodes, found = new Map<string, Definition>()): Map<string, Definition> {
  if (node.type === "definition" && !found.has(node.identifier)) found.set(node.identifier, node);
  if ("children" in node) for (const child of node.children) definitionsIn(child, found);
  return found;
}

class Writer {
  #text = "";
  readonly #ranges: Range[] = [];
  readonly #definitions: ReadonlyMap<string, Definition>;
  #quoted = false;

  constructor(definitions: ReadonlyMap<string, Definition>) {
    this.#definitions = definitions;
  }

  write(root: Nodes): RichText {
    if ("children" in root) this.#blocks(root.children as RootContent[], "\n\n");
    const text = this.#text.trimEnd();
    const ranges = this.#ranges
      .map((range) => ({ ...range, end: Math.min(range.end, text.length) }))
      .filter((range) => range.end > range.start);
    return { text, ranges };
  }

  #styled(style: Style, body: () => void): void {
    const start = this.#text.length;
    const place = this.#ranges.length;
    body();
    const end = this.#text.length;
    if (end > start) this.#ranges.splice(place, 0, { ...style, start, end });
  }

  #blocks(nodes: readonly RootContent[], gap: string): void {
    let first = true;
    for (const node of nodes) {
      if (node.type === "definition") continue;
      const before = this.#text.length;
      if (!first) this.#text += gap;
      const start = this.#text.length;
      this.#block(node);
      if (this.#text.length === start) this.#text = this.#text.slice(0, before);
      else first = false;
    }
  }

  #block(node: RootContent): void {
    switch (node.type) {
      case "heading":
        this.#styled({ type: "bold" }, () => this.#inlines(node));
        return;
      case "blockquote": {
        // Not every platform supports nested quotes, and plain-text platforms cannot show them readably.
        if (this.#quoted) {
          this.#blocks(node.children, "\n\n");
          return;
        }
        this.#quoted = true;
        this.#styled({ type: "blockquote" }, () => this.#blocks(node.children, "\n\n"));
        this.#quoted = false;
        return;
      }
      case "list": {
        let number = node.start ?? 1;
        let first = true;
        for (const item of node.children) {
          if (!first) this.#text += "\n";
          first = false;
          const bullet = node.ordered === true ? `${number}. ` : "• ";
          number += 1;
          const box = item.checked === true ? "☑ " : item.checked === false ? "☐ " : "";
          this.#text += box || bullet;
          this.#indented(() => this.#blocks(item.children, "\n"));
        }
        return;
      }
      case "code":
        this.#styled({ type: "pre", language: languageOf(node.lang) }, () => (this.#text += node.value));
        return;
      case "table":
        this.#styled({ type: "pre", language: null }, () => (this.#text += this.#table(node)));
        return;
      case "thematicBreak":
        this.#text += "———";
        return;
      case "footnoteDefinition":
        this.#text += `[${node.label ?? node.identifier}] `;
        this.#blocks(node.children, "\n");
        return;
      case "paragraph":
        this.#inlines(node);
        return;
      case "html":
        this.#text += node.value;
        return;
      default:
        this.#inline(node as PhrasingContent);
    }
  }

  /** Indents all lines of `body` after the first by two spaces, except lines of code blocks. */
  #indented(body: () => void): void {
    const start = this.#text.length;
    const place = this.#ranges.length;
    body();
    const inner = this.#ranges.slice(place);
    const code = inner.filter((range) => range.type === "pre");
    const breaks: number[] = [];
    for (let at = this.#text.indexOf("\n", start); at !== -1; at = this.#text.indexOf("\n", at + 1)) {
      if (!code.some((range) => at >= range.start - 1 && at < range.end)) breaks.push(at + 1);
    }
    if (breaks.length === 0) return;
    const moved = (position: number, isEnd: boolean): number =>
      position + 2 * breaks.filter((at) => (isEnd ? at < position : at <= position)).length;
    let text = this.#text.slice(0, start);
    let from = start;
    for (const at of breaks) {
      text += `${this.#text.slice(from, at)}  `;
      from = at;
    }
    this.#text = text + this.#text.slice(from);
    for (const [index, range] of inner.entries()) {
      this.#ranges[place + index] = { ...range, start: moved(range.start, false), end: moved(range.end, true) };
    }
  }

  #inlines(node: Parents): void {
    for (const child of node.children) this.#inline(child as PhrasingContent);
  }

  #inline(node: PhrasingContent): void {
    switch (node.type) {
      case "text":
        this.#text += node.value;
        return;
      case "strong":
        this.#styled({ type: "bold" }, () => this.#inlines(node));
        return;
      case "emphasis":
        this.#styled({ type: "italic" }, () => this.#inlines(node));
        return;
      case "delete":
        this.#styled({ type: "strikethrough" }, () => this.#inlines(node));
        return;
      case "inlineCode":
        this.#styled({ type: "code" }, () => (this.#text += node.value));
        return;
      case "break":
        this.#text += "\n";
        return;
      case "link":
        this.#link(node.url, () => this.#inlines(node));
        return;
      case "linkReference":
        this.#link(this.#definitions.get(node.identifier)?.url ?? "", () => this.#inlines(node));
        return;
      case "image":
        this.#link(node.url, () => (this.#text += node.alt || "image"));
        return;
      case "imageReference":
        this.#link(this.#definitions.get(node.identifier)?.url ?? "", () => (this.#text += node.alt || "image"));
        return;
      case "footnoteReference":
        this.#text += `[${node.label ?? node.identifier}]`;
        return;
      case "html":
        this.#text += /^<br\s*\/?>$/i.test(node.value) ? "\n" : node.value;
    }
  }

  /** A link that works on any device becomes a range; a path or an unusual scheme is appended to its label as text. */
  #link(url: string, label: () => void): void {
    if (/^(?:https?|mailto|tg):/i.test(url)) {
      this.#styled({ type: "link", url }, label);
      return;
    }
    label();
    if (url !== "") this.#text += ` (${url})`;
  }

  #table(table: Table): string {
    const rows = table.children.map((row) =>
      row.children.map((cell) => new Writer(this.#definitions).#cell(cell).replaceAll("\n", " ")),
    );
    const widths: number[] = [];
    for (const row of rows) {
      for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, widthOf(cell));
    }
    const line = (row: readonly string[]): string =>
      widths
        .map((width, column) => {
          const cell = row[column] ?? "";
          const space = " ".repeat(width - widthOf(cell));
          return table.align?.[column] === "right" ? space + cell : cell + space;
        })
        .join(" | ")
        .trimEnd();
    const [head = [], ...body] = rows;
    return [line(head), widths.map((width) => "-".repeat(width)).join("-+-"), ...body.map(line)].join("\n");
  }

  #cell(cell: Parents): string {
    this.#inlines(cell);
    return this.#text;
  }
}

function languageOf(info: string | null | undefined): string | null {
  return /^[A-Za-z0-9+#._-]{1,32}$/.exec(info ?? "")?.[0] ?? null;
}

/** Approximate columns in a fixed-width font: East Asian wide characters and emoji take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return width;
}
