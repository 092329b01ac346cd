// The tool `read`: one page of a text file, streamed; a picture as an attachment; a PDF as an attachment or as the text of its
// pages; a notebook as its cells.
import type { FileHandle } from "node:fs/promises";
import { attachmentName, documentPathProblem, sizeText, markUntrusted } from "@parley/contracts";
import { z } from "zod";
import { resolveDocument, orErrorText, noSuchDocument, type DocumentAccess } from "./document-access.ts";
import { isDocumentFolder } from "../documents/paths.ts";
import { untrustedLinesOf } from "../documents/untrusted-lines.ts";
import { formatCall, defineTool, failure, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { displayPath } from "../workspace/paths.ts";
import { openFile } from "../workspace/directory-handles.ts";
import { keepAs, maxContentBytes, tooLarge } from "./attach.ts";
import { binaryKind, viewableKind } from "../text/file-kind.ts";
import { readPage, type Page } from "./page.ts";
import { maxNotebookBytes } from "../text/notebook.ts";
import { maxPdfPages, pageRange, showPdf } from "./read-pdf.ts";
import { runOnText } from "../text/text-worker.ts";

const maxPageCharacters = 50 * 1024;
const defaultLines = 2_000;
/** Characters of one part of a line that is longer than a page; a command shows 28,000 bytes. */
const partCharacters = 25_000;
const headBytes = 8_192;
const chunkBytes = 256 * 1024;
/** Maximum size of a picture that models are shown: agent-core's `model/attachments.ts`. */
const maxPictureBytes = Math.floor((5 * 1024 * 1024 * 3) / 4);

export const readTool = defineTool({
  name: "read",
  aliases: ["read_file", "Read"],
  summary: "Read a text file in pages, or view a picture or a PDF.",
  description:
    "Read a workspace file, with line numbers. At most 2,000 lines and 50 KB a page. Pictures and short PDFs are shown to you directly if you can see them, notebooks by cell.",
  args: z.strictObject({
    path: z.string().min(1).describe("Path in the workspace."),
    offset: z.number().int().min(1).optional().describe("First line, from 1."),
    limit: z
      .number()
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe("Number of lines to read.")
      .meta({ modelSchema: "name_only" }),
    pages: z
      .string()
      .refine((text) => pageRange(text) !== undefined, {
        error: `one page or a range of at most ${maxPdfPages}, such as "3" or "1-5"`,
      })
      .optional()
      .describe(`PDF pages as text, at most ${maxPdfPages}: "1-5".`),
  }),
  examples: [{ path: "notes/plan.md" }, { path: "log.txt", offset: 2001, limit: 500 }],
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: ["reads_files"],
  timeoutMs: 30_000,
  limits: [
    "2,000 lines by default, at most 10,000, and 50 KB per page; a file may have any size; a line longer than a page is cut.",
    "Pictures up to 3.75 MiB; they are not scaled down.",
    "PDFs up to 64 MiB, shown directly up to 20 MiB and 20 pages; 20 pages and 50 KB of text per call, read within 20 s and 384 MiB of memory.",
    "Notebooks up to 5 MiB as cells, with 4,000 characters of each output.",
  ],
  run: async (args, context) => {
    const document = resolveDocument(args.path, context);
    const maxCharacters = Math.min(maxPageCharacters, context.maxPageCharacters ?? maxPageCharacters);
    const request = { ...args, maxCharacters };
    if (document !== undefined) return args.pages === undefined ? readDocument(document, request) : noPages(args.path);
    await using place = await context.workspace.resolve(args.path);
    await using file = await openFile(place);
    const { handle, stats } = file;
    if (stats.size === 0) {
      const { bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, 0);
      if (bytesRead === 0) return success(`"${displayPath(place.relative)}" is empty.`);
    }
    const head = Buffer.alloc(headBytes);
    const { bytesRead } = await handle.read(head, 0, headBytes, 0);
    const viewable = viewableKind(head.subarray(0, bytesRead));
    if (viewable === "pdf") {
      if (stats.size > maxContentBytes) return failure(tooLarge(place.relative, stats.size));
      const file = { path: args.path, content: await whole(handle, stats.size) };
      return await showPdf(file, args.pages === undefined ? undefined : pageRange(args.pages), context);
    }
    if (args.pages !== undefined) return noPages(place.relative);
    if (viewable === "picture" && context.attachmentStore !== undefined) {
      return await view(handle, stats.size, place.relative, context);
    }
    const binary = binaryKind(head.subarray(0, bytesRead));
    if (binary !== undefined) {
      return failure(
        `"${displayPath(place.relative)}" is not a text file: it looks like ${binary} (${stats.size} bytes). Use exec with a program that can read it.`,
      );
    }
    const cells = await notebook(handle, stats.size, place.relative, context);
    if (cells !== undefined) return await readFrom(only(cells), cells.length, request);
    return await readFrom(chunksOf(handle, context.signal), stats.size, request);
  },
});

function noPages(path: string): ToolOutput {
  return failure(`"${displayPath(path)}" is not a PDF and has no pages. Read text with offset and limit.`);
}

/** Reads from the beginning, independent of the handle's position. */
async function whole(handle: FileHandle, size: number): Promise<Buffer> {
  const content = Buffer.alloc(size);
  const { bytesRead } = await handle.read(content, 0, size, 0);
  return content.subarray(0, bytesRead);
}

/** A notebook's cells as text; undefined for other files. */
async function notebook(
  handle: FileHandle,
  size: number,
  path: string,
  { signal }: ToolContext,
): Promise<Buffer | undefined> {
  if (!path.endsWith(".ipynb") || size > maxNotebookBytes) return undefined;
  const json = (await whole(handle, size)).toString("utf8");
  const text = await runOnText("showNotebook", { text: json }, signal);
  return text === undefined ? undefined : Buffer.from(text === "" ? "(a notebook without cells)" : text);
}

/** Returns a picture as an attachment of the result. */
async function view(handle: FileHandle, size: number, path: string, context: ToolContext): Promise<ToolOutput> {
  if (size > maxPictureBytes) {
    return failure(
      `"${displayPath(path)}" has ${sizeText(size)}; you can view pictures of at most ${sizeText(maxPictureBytes)}. Make it smaller with exec, e.g. with ImageMagick (convert in.png -resize 1600x1600 out.jpg), then read the result. To send it to people unchanged, use attach.`,
    );
  }
  const name = attachmentName(path, "file");
  return keepAs(context, await whole(handle, size), name, (attachment) => ({
    ...success(`"${displayPath(path)}" is ${attachment.mediaType}, ${sizeText(attachment.bytes)}.`),
    shownAttachments: [attachment],
  }));
}

interface PageArgs {
  path: string;
  offset?: number | undefined;
  limit?: number | undefined;
  /** Of one page. */
  maxCharacters: number;
}

/** The requested page of a text of `size` bytes. */
async function readFrom(chunks: AsyncIterable<Uint8Array>, size: number, args: PageArgs): Promise<ToolOutput> {
  return present(await pageOf(chunks, args), args, size);
}

function pageOf(chunks: AsyncIterable<Uint8Array>, args: PageArgs): Promise<Page> {
  const { offset = 1, limit = defaultLines, maxCharacters } = args;
  return readPage(chunks, { offset, limit, maxCharacters });
}

async function readDocument({ documents, path }: DocumentAccess, args: PageArgs): Promise<ToolOutput> {
  return orErrorText(async () => {
    const document = documentPathProblem(path) === null ? await documents.read(path) : null;
    if (document !== null) {
      if (document.content === "") return success(`"${path}" is empty.`);
      const page = await pageOf(only(Buffer.from(document.content)), args);
      if (page.lines.length === 0) return present(page, args, document.bytes);
      const untrusted = await untrustedLinesOf(documents, document);
      const { offset = 1 } = args;
      const lines = page.lines.map((line, index) => ({ shown: line, untrusted: untrusted(offset + index) }));
      return present({ ...page, lines: markUntrusted(lines) }, args, document.bytes);
    }
    const isFolder = (await documents.list()).some((each) => each.path.startsWith(`${path}/`));
    return isFolder || isDocumentFolder(path)
      ? failure(`"${displayPath(path)}" is a directory; list it with ls.`)
      : noSuchDocument(path);
  });
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function present(page: Page, args: PageArgs, size: number): ToolOutput {
  const { offset = 1 } = args;
  const text = page.lines.join("\n");
  if (page.lines.length === 0) {
    return failure(`The file has ${page.skipped} lines; line ${offset} is past its end.`);
  }
  const notices: string[] = [];
  // Overlaps with what is shown, so that nothing is missing between.
  const from = Math.max(1, args.maxCharacters - 1_199);
  for (const line of page.cutLines) {
    notices.push(
      `[Line ${line} is longer than a page and was cut. Read parts of it with ${formatCall("exec", { command: `sed -n ${line}p '${args.path.replaceAll("'", "'\\''")}' | cut -c ${from}-${from + partCharacters - 1}` })}.]`,
    );
  }
  if (page.next !== undefined) {
    const next = formatCall("read", {
      path: args.path,
      offset: page.next,
      ...(args.limit === undefined ? {} : { limit: args.limit }),
    });
    notices.push(`[Lines ${offset} to ${page.next - 1} of a file of ${size} bytes. Read on with: ${next}]`);
  }
  return success(notices.length === 0 ? text : `${text}\n\n${notices.join("\n")}`);
}

/** The file's bytes; all chunks share one buffer. */
async function* chunksOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.alloc(chunkBytes);
  let position = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
