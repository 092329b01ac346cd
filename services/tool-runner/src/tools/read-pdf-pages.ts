// Reads the text of PDF pages in a separate thread, which is terminated when it exceeds its time or memory limit: no document
// can block the service or exhaust its memory.
import { FairSemaphore } from "@parley/kit";
import { Worker } from "node:worker_threads";
import { z } from "zod";

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

interface PdfLimits {
  /** Wall time. */
  timeoutMs: number;
  /** The thread's heap and external buffers, in total. */
  maxMemoryBytes: number;
}

const pdfLimits: PdfLimits = { timeoutMs: 20_000, maxMemoryBytes: 384 * 1024 * 1024 };
/** Interval of the checks of the thread's memory. */
const lookMs = 50;
/** Number of documents that are read at the same time. */
const line = new FairSemaphore(2);

/** The thread's file is TypeScript when the service runs from source. */
const threadFile = new URL(
  import.meta.url.endsWith(".ts") ? "./read-pdf-thread.ts" : "./read-pdf-thread.js",
  import.meta.url,
);

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
    return await inThread({ content, ...range, maxCharacters }, signal, limits);
  } finally {
    release();
  }
}

async function inThread(job: object, signal: AbortSignal, limits: PdfLimits): Promise<PdfReading> {
  signal.throwIfAborted();
  const thread = new Worker(threadFile, {
    env: {},
    workerData: job,
    // Discards the parser's output about the document.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(limits.maxMemoryBytes / 1024 / 1024) },
  });
  const { promise, resolve, reject } = Promise.withResolvers<PdfReading>();
  const tooMuch = (what: string) => resolve({ status: "unreadable", reason: `reading it takes too much ${what}` });
  const abort = () => reject(signal.reason);
  thread.once("message", (answer: unknown) => {
    const parsed = PdfReadingSchema.safeParse(answer);
    if (parsed.success) resolve(parsed.data);
    else reject(parsed.error);
  });
  thread.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ERR_WORKER_OUT_OF_MEMORY") tooMuch("memory");
    else reject(error);
  });
  thread.once("exit", (code) => reject(new Error(`PDF thread ended with exit code ${code}`)));
  signal.addEventListener("abort", abort, { once: true });
  const time = setTimeout(() => tooMuch("time"), limits.timeoutMs);
  const look = async () => {
    // Rejects when the thread has just ended.
    const heap = await thread.getHeapStatistics().catch(() => undefined);
    if (heap !== undefined && heap.used_heap_size + heap.external_memory > limits.maxMemoryBytes) tooMuch("memory");
  };
  // The heap limit does not include the buffers of decompressed streams.
  const memory = setInterval(() => void look(), lookMs);
  try {
    return await promise;
  } finally {
    clearTimeout(time);
    clearInterval(memory);
    signal.removeEventListener("abort", abort);
    await thread.terminate();
  }
}
