// A text as it is read aloud: what markup is for the eye is left out. Pure.
import type { Nodes } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** Blocks that end a breath. */
const blocks = new Set(["paragraph", "heading", "listItem", "tableRow", "code", "blockquote", "table", "list", "root"]);

/** At most `max` characters, cut at the end of a sentence where one is near. Empty: there is nothing to say. */
export function speakable(markdown: string, max: number): string {
  const tree = fromMarkdown(markdown, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  const words = spoken(tree)
    .replaceAll(/[^\S\n]+/g, " ")
    .replaceAll(/ ?\n[\s]*/g, "\n")
    .trim();
  return /[\p{L}\p{N}]/u.test(words) ? cut(words, max) : "";
}

function spoken(node: Nodes): string {
  switch (node.type) {
    case "code":
      return "\n(Code is left out.)\n";
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
      // An address is for the eye; what it is called stands before it, or it is one.
      return node.value.replaceAll(/https?:\/\/\S+/g, "(a link)");
    case "inlineCode":
      return node.value;
    case "tableCell":
      return `${node.children.map(spoken).join("")}, `;
    default: {
      const inner = "children" in node ? node.children.map(spoken).join("") : "";
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
