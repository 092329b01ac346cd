// What people see of a message: Slack's own rendering of Markdown, mrkdwn and Block Kit, with the limits that the service checks.
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { z } from "zod";
import type { SlackButton } from "./state.ts";

/** Limits of Block Kit: https://docs.slack.dev/reference/block-kit/blocks */
const maxBlocks = 50;
const maxMarkdown = 12_000;
const maxSection = 3_000;
const maxElements = 25;
const maxContext = 10;

const PlainText = z.object({ type: z.literal("plain_text"), text: z.string().min(1).max(75) });
const Button = z.object({
  type: z.literal("button"),
  text: PlainText,
  action_id: z.string().min(1).max(255),
  value: z.string().max(2_000).optional(),
  style: z.enum(["primary", "danger"]).optional(),
});
const Mrkdwn = z.object({ type: z.enum(["mrkdwn", "plain_text"]), text: z.string().min(1).max(maxSection) });
const blockId = z.string().max(255).optional();
const Block = z.discriminatedUnion("type", [
  z.object({ type: z.literal("markdown"), text: z.string().min(1).max(maxMarkdown), block_id: blockId }),
  z.object({ type: z.literal("section"), text: Mrkdwn, block_id: blockId }),
  z.object({ type: z.literal("context"), elements: z.array(Mrkdwn).min(1).max(maxContext), block_id: blockId }),
  z.object({ type: z.literal("actions"), elements: z.array(Button).min(1).max(maxElements), block_id: blockId }),
  z.object({ type: z.literal("divider"), block_id: blockId }),
]);
const Blocks = z.array(Block).max(maxBlocks);
type Block = z.infer<typeof Block>;

export interface Rendered {
  text: string;
  buttons: SlackButton[];
  notified: string[];
}

/** Returns null when the blocks break a rule of Block Kit: `invalid_blocks`. */
export function renderBlocks(given: unknown): Rendered | null {
  const parsed = Blocks.safeParse(given);
  if (!parsed.success) return null;
  const blocks = parsed.data;
  const markdown = blocks.reduce((sum, block) => sum + (block.type === "markdown" ? block.text.length : 0), 0);
  if (markdown > maxMarkdown) return null;
  const actionIds = blocks.flatMap((block) => (block.type === "actions" ? block.elements : [])).map((e) => e.action_id);
  if (new Set(actionIds).size !== actionIds.length) return null;
  const sources = blocks.flatMap(sourcesOf);
  return {
    text: blocks.flatMap(textsOf).join("\n"),
    buttons: blocks.flatMap(buttonsOf),
    notified: sources.flatMap(notifiedBy),
  };
}

function textsOf(block: Block): string[] {
  if (block.type === "markdown") return [renderMarkdown(block.text)];
  if (block.type === "section") return [renderMrkdwn(block.text.text)];
  return block.type === "context" ? block.elements.map(({ text }) => renderMrkdwn(text)) : [];
}

function sourcesOf(block: Block): string[] {
  if (block.type === "markdown") return [block.text];
  if (block.type === "section") return [block.text.text];
  return block.type === "context" ? block.elements.map(({ text }) => text) : [];
}

function buttonsOf(block: Block, index: number): SlackButton[] {
  if (block.type !== "actions") return [];
  const id = block.block_id ?? `b${index}`;
  return block.elements.map(({ text, action_id: actionId, value = "" }) => ({
    label: text.text,
    actionId,
    value,
    blockId: id,
  }));
}

/** The people and groups whom control sequences in a text notify. */
export function notifiedBy(source: string): string[] {
  return [...source.matchAll(/<([@!][^>|\s]+)(?:\|[^>]*)?>/g)].map(([, target = ""]) => target);
}

/** Text of mrkdwn: control sequences as their labels, without the marks of styles. */
export function renderMrkdwn(source: string): string {
  return source
    .replaceAll(/<([^>|]+)(?:\|([^>]*))?>/g, (_, target: string, label?: string) => label ?? target)
    .replaceAll(/(^|[\s(])([*_~])(?=\S)([^\n]*?\S)\2(?=$|[\s).,;:!?])/gm, "$1$3")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

interface MarkdownNode {
  type: string;
  value?: string;
  alt?: string | null | undefined;
  children?: MarkdownNode[];
}

const inlineParents: ReadonlySet<string> = new Set(["paragraph", "heading", "tableCell"]);

/** Text of Markdown: HTML stays as it was written. */
function renderMarkdown(source: string): string {
  const tree: MarkdownNode = fromMarkdown(source, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  return textOf(tree).trim();
}

function textOf(node: MarkdownNode): string {
  if (node.type === "break") return "\n";
  const { children } = node;
  if (children === undefined) return node.value ?? node.alt ?? "";
  const inline = inlineParents.has(node.type) || !children.some(({ type }) => blockTypes.has(type));
  return children.map(textOf).join(node.type === "tableRow" ? " " : inline ? "" : "\n");
}

const blockTypes: ReadonlySet<string> = new Set([
  "paragraph",
  "heading",
  "list",
  "listItem",
  "blockquote",
  "code",
  "table",
  "tableRow",
  "thematicBreak",
  "html",
]);
