// Reads the text of PDF pages in a thread of its own, which is ended when it takes too long or too much memory: no document hangs
// the service or fills its memory.
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { WaitingLine } from "../serving/waiting-line.ts";

const PdfReadingSchema = z.discriminatedUnion("status", [
  z.object({
    status: z.literal("read"),
    /** Of the whole document. */
    pages: z.number().int().nonnegative(),
    /** Of the pages that were asked for, in order; fewer where the document, or the room, ends before. */
    texts: z.array(z.string()),
  }),
  /** `reason` goes on "because …". */
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
  /** Of the thread: its heap and the buffers outside of it, together. */
  maxMemoryBytes: number;
}

const pdfLimits: PdfLimits = { timeoutMs: 20_000, maxMemoryBytes: 384 * 1024 * 1024 };
/** Between two looks at the thread's memory. */
const lookMs = 50;
/** Documents that are read at the same time. */
const line = new WaitingLine(2);

/** From source the thread's file is TypeScript too. */
const threadFile = new URL(
  import.meta.url.endsWith(".ts") ? "./read-pdf-thread.ts" : "./read-pdf-thread.js",
  import.meta.url,
);

/**
 * The text of some pages, at most about `maxCharacters` of it. A document that cannot be read, or is too much, is an answer too.
 * Rejects with the signal's reason when it is aborted first.
 */
export async function readPdfPages(
  content: Uint8Array,
  range: PageRange,
  maxCharacters: number,
  signal: AbortSignal,
  limits = pdfLimits,
): Promise<PdfReading> {
  const release = await line.enter(signal);
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
    // What it says is about the document, and for nobody.
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
  thread.once("exit", (code) => reject(new Error(`the thread that reads PDFs ended with ${code}`)));
  signal.addEventListener("abort", abort, { once: true });
  const time = setTimeout(() => tooMuch("time"), limits.timeoutMs);
  const look = async () => {
    // It does not answer when it has just ended.
    const heap = await thread.getHeapStatistics().catch(() => undefined);
    if (heap !== undefined && heap.used_heap_size + heap.external_memory > limits.maxMemoryBytes) tooMuch("memory");
  };
  // The limit on its heap does not count the buffers that streams are unpacked into.
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
