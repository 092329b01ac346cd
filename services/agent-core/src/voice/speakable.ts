// Converts Markdown to plain text for speech. Pure.
import type { Nodes } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** Blocks that are followed by a pause. */
const blocks = new Set(["paragraph", "heading", "listItem", "tableRow", "code", "blockquote", "table", "list", "root"]);

/** At most `max` characters, truncated at the end of a sentence if one is near. Empty if nothing can be spoken. */
export function speakable(markdown: string, max: number): string {
  const tree = fromMarkdown(markdown, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  const words = speakableText(tree)
    .replaceAll(/[^\S\n]+/g, " ")
    .replaceAll(/ ?\n[\s]*/g, "\n")
    .trim();
  return /[\p{L}\p{N}]/u.test(words) ? cut(words, max) : "";
}

function speakableText(node: Nodes): string {
  switch (node.type) {
    case "code":
      return "\n(Code omitted.)\n";
    case "html":
    case "definition":
    case "thematicBreak":
    case "footnoteDefinition":
      return "\n";
    case "break":
      return "\n";
    case "image":
      return node.alt ?? "";
    case "text":
      // URLs are not speakable; the link text precedes them, if there is one.
      return node.value.replaceAll(/https?:\/\/\S+/g, "(a link)");
    case "inlineCode":
      return node.value;
    case "tableCell":
      return `${node.children.map(speakableText).join("")}, `;
    default: {
      const inner = "children" in node ? node.children.map(speakableText).join("") : "";
      return blocks.has(node.type) ? `\n${inner}\n` : inner;
    }
  }
}

const sentenceEnd = /[.!?…:;。！？]["')\]]?\s/gu;

function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const room = text.slice(0, max).toWellFormed();
  const ends = [...room.matchAll(sentenceEnd)].map((match) => match.index + match[0].length);
  const end = ends.at(-1) ?? 0;
  return room.slice(0, end > max / 2 ? end : max).trim();
}
