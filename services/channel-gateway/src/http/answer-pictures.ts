// Turns pictures in answers into links, for clients that show Markdown and would load a picture without a click: its address could carry
// private text to another host. Code is unchanged. A picture with its content in its address (`data:`) stays.
import type { Html, Image, ImageReference, Nodes, Text } from "mdast";

/** HTML tags that a client may load something for. */
const loadingTag =
  /<(?=\/?(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|svg|link|style|input)\b)/gi;
/** Where something that is loaded begins, unless it is part of code. */
const loading = new RegExp(`!\\[|${loadingTag.source}`, "i");
/** The end of a text that may be the beginning of it. */
const undecided = /(?:!|<\/?[a-z]{0,8})$/i;
/** Pictures within the description of a picture: each level is a pass. */
const mostPasses = 4;

/** Lets a streamed answer through up to its first picture; the rest follows at its end, because later lines decide what is code. */
export class StreamedPictures {
  #text = "";
  #shown = 0;

  /** The text that may be shown after this piece. */
  add(piece: string): string {
    this.#text += piece;
    const found = this.#text.slice(this.#shown).search(loading);
    const pending = undecided.exec(this.#text.slice(this.#shown))?.index ?? -1;
    const held = found === -1 ? pending : found;
    const end = held === -1 ? this.#text.length : this.#shown + held;
    const shown = this.#text.slice(this.#shown, end);
    this.#shown = end;
    return shown;
  }

  /** The rest of the text. */
  async end(): Promise<string> {
    return (await withoutPictures(this.#text)).slice(this.#shown);
  }
}

/** The Markdown text with links instead of pictures, and with HTML that loads something shown as text. */
export async function withoutPictures(markdown: string): Promise<string> {
  if (!loading.test(markdown)) return markdown;
  const { parseMarkdown } = await import("../channels/text/rich-text.ts");
  let text = markdown;
  for (let pass = 0; pass < mostPasses; pass++) {
    const tree = parseMarkdown(text);
    if (tree === null) break;
    const found = loadingNodes(tree, text);
    if (found.length === 0) return text;
    for (const node of found.toReversed()) text = replaced(text, node);
  }
  // Too complex to be parsed, or nested too deeply.
  return text
    .replace(/(?<=!)!\[/g, " [")
    .replaceAll("![", "[")
    .replace(loadingTag, "&lt;");
}

function loadingNodes(node: Nodes, source: string): (Html | Text | Image | ImageReference)[] {
  if (node.type === "image") return /^data:/i.test(node.url) ? [] : [node];
  if (node.type === "imageReference") return [node];
  // Text too: parsers differ in what they take for HTML.
  if (node.type === "html" || node.type === "text")
    return sourceOf(node, source).search(loadingTag) === -1 ? [] : [node];
  return "children" in node ? node.children.flatMap((child) => loadingNodes(child, source)) : [];
}

/** The Markdown of a node, where `&lt;` is not `<` as in the node's value. */
function sourceOf({ position }: Nodes, source: string): string {
  return source.slice(position?.start.offset, position?.end.offset);
}

function replaced(text: string, { type, position }: Html | Text | Image | ImageReference): string {
  const start = position?.start.offset ?? 0;
  const end = position?.end.offset ?? text.length;
  const source = text.slice(start, end);
  // The mark before `![` must not become that of a picture.
  const link = (text[start - 1] === "!" ? " " : "") + source.slice(1);
  const isPicture = type === "image" || type === "imageReference";
  return text.slice(0, start) + (isPicture ? link : source.replace(loadingTag, "&lt;")) + text.slice(end);
}
