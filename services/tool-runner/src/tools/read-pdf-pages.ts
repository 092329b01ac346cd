// Reads the text of PDF pages in a separate thread, which is terminated when it exceeds its time or memory limit: no document
// can block the service or exhaust its memory.
import { FairSemaphore } from "@parley/kit";
import { z } from "zod";
import { runInThread, ThreadLimitError, type ThreadLimits } from "../worker/run-in-thread.ts";

const PdfReadingSchema = z.discriminatedUnion("status", [
  z.object({
    status: z.literal("read"),
    /** Number of pages of the document. */
    pages: z.number().int().nonnegative(),
    /** Texts of the requested pages, in order; fewer at the end of the document or at the character limit. */
    texts: z.array(z.string()),
  }),
  /** `reason` completes a sentence "cannot be read: …". */
  z.object({ status: z.literal("unreadable"), reason: z.string() }),
]);
export type PdfReading = z.infer<typeof PdfReadingSchema>;

export interface PageRange {
  /** From 1. */
  from: number;
  to: number;
}

const pdfLimits: ThreadLimits = { timeoutMs: 20_000, maxMemoryBytes: 384 * 1024 * 1024 };
/** Number of documents that are read at the same time. */
const line = new FairSemaphore(2);

/**
 * The text of some pages, at most about `maxCharacters`. Returns `unreadable` for a document that cannot be read or exceeds the limits.
 * Rejects with the signal's reason when it is aborted first.
 */
export async function readPdfPages(
  content: Uint8Array,
  range: PageRange,
  maxCharacters: number,
  signal: AbortSignal,
  limits = pdfLimits,
): Promise<PdfReading> {
  const release = await line.acquire(signal);
  try {
    const job = { content, ...range, maxCharacters };
    const file = new URL("./read-pdf-thread", import.meta.url);
    return PdfReadingSchema.parse(await runInThread(file, job, limits, signal));
  } catch (error) {
    if (!(error instanceof ThreadLimitError)) throw error;
    return { status: "unreadable", reason: `reading it takes too much ${error.limit}` };
  } finally {
    release();
  }
}
