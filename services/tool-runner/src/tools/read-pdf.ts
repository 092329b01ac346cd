// A PDF as `read` shows it: the document itself, if the model can see it, or the text of some of its pages.
import { attachmentName, sizeText } from "@parley/contracts";
import { formatCall, failure, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { displayPath } from "../workspace/paths.ts";
import { keepAs } from "./attach.ts";
import { readPdfPages, type PageRange, type PdfReading } from "./read-pdf-pages.ts";

/** Maximum number of pages per call, and of a document that is shown directly. */
export const maxPdfPages = 20;
/** Maximum size of content that models are shown directly: agent-core's `model/attachments.ts`. */
const maxShownBytes = 20 * 1024 * 1024;
const maxPdfCharacters = 50 * 1024;

export interface PdfFile {
  path: string;
  content: Uint8Array;
}

/** Parses `3` or `3-7`; undefined when the text is invalid or the range is too long. */
export function pageRange(text: string): PageRange | undefined {
  const [, first, last] = /^\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?$/.exec(text) ?? [];
  if (first === undefined) return undefined;
  const range = { from: Number(first), to: Number(last ?? first) };
  return range.from >= 1 && range.to >= range.from && range.to - range.from < maxPdfPages ? range : undefined;
}

/** Shows a PDF, or the requested pages of it. */
export async function showPdf(
  file: PdfFile,
  requested: PageRange | undefined,
  context: ToolContext,
): Promise<ToolOutput> {
  const range = requested ?? { from: 1, to: maxPdfPages };
  const maxCharacters = Math.min(maxPdfCharacters, context.maxPageCharacters ?? maxPdfCharacters);
  const reading = await readPdfPages(file.content, range, maxCharacters, context.signal);
  const mayShow = context.attachmentStore !== undefined && file.content.length <= maxShownBytes;
  if (reading.status === "unreadable") {
    if (requested === undefined && mayShow) return asItIs(file, context, []);
    return failure(
      `The text of "${displayPath(file.path)}" cannot be read: ${reading.reason}. ${otherWays(file.path, mayShow)}`,
    );
  }
  const { pages, texts } = reading;
  if (range.from > pages)
    return failure(`"${displayPath(file.path)}" has ${pages} pages; page ${range.from} is past its end.`);
  const count = `It has ${pages} ${pages === 1 ? "page" : "pages"}.`;
  const hasText = texts.some((text) => text.trim() !== "");
  if (requested === undefined && mayShow && (pages <= maxPdfPages || !hasText)) {
    return asItIs(file, context, [
      count,
      ...(hasText ? [`Read its text with: ${pagesCall(file.path, 1, Math.min(pages, maxPdfPages))}`] : []),
    ]);
  }
  if (hasText) return success(presentPages(file.path, range, reading, maxCharacters));
  if (mayShow) return asItIs(file, context, [count, "These pages contain no text; the document itself is shown."]);
  return failure(
    `The pages of "${displayPath(file.path)}" contain no text, only pictures. ${otherWays(file.path, false)}`,
  );
}

function asItIs({ path, content }: PdfFile, context: ToolContext, more: readonly string[]): Promise<ToolOutput> {
  return keepAs(context, content, attachmentName(path, "file"), (attachment) => ({
    ...success(
      [`"${displayPath(path)}" is ${attachment.mediaType}, ${sizeText(attachment.bytes)}.`, ...more].join(" "),
    ),
    shownAttachments: [attachment],
  }));
}

/** As many whole pages as fit; a page that alone exceeds the limit is cut. Pure. */
export function presentPages(
  path: string,
  { from }: PageRange,
  { pages, texts }: PdfReading & { status: "read" },
  maxCharacters = maxPdfCharacters,
): string {
  const lines: string[] = [];
  let characters = 0;
  let next = from;
  for (const text of texts) {
    const cut = text.length > maxCharacters;
    const page = `[page ${next} of ${pages}]\n${text.slice(0, maxCharacters).toWellFormed().trimEnd()}${cut ? `\n[page ${next} is cut: it has more than ${maxCharacters} characters]` : ""}`;
    if (lines.length > 0 && characters + page.length > maxCharacters) break;
    lines.push(page);
    characters += page.length;
    next += 1;
  }
  if (next <= pages) {
    const to = Math.min(pages, next + maxPdfPages - 1);
    lines.push(`[Pages ${from} to ${next - 1} of ${pages}. Read on with: ${pagesCall(path, next, to)}]`);
  }
  return lines.join("\n");
}

function pagesCall(path: string, from: number, to: number): string {
  return formatCall("read", { path, pages: from === to ? `${from}` : `${from}-${to}` });
}

function otherWays(path: string, mayShow: boolean): string {
  const pictures = "Convert its pages to pictures with exec (e.g. pdftoppm), and read those.";
  return mayShow ? `View the document itself with ${formatCall("read", { path })}. ${pictures}` : pictures;
}
