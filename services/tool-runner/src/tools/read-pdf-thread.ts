// Thread that reads some pages of one PDF and ends. A hostile document affects only this thread.
import { parentPort } from "node:worker_threads";
import { getDocumentProxy } from "unpdf";
import { z } from "zod";
import type { PdfReading } from "./read-pdf-pages.ts";

const Job = z.object({
  content: z.instanceof(Uint8Array),
  from: z.number(),
  to: z.number(),
  maxCharacters: z.number(),
});

/** Name of unpdf's error for a document that requires a password. */
const passwordError = "PasswordException";

async function read(job: unknown): Promise<PdfReading> {
  const { content, from, to, maxCharacters } = Job.parse(job);
  const document = await getDocumentProxy(content, {
    // Text only: no rendering, fonts or log output.
    verbosity: 0,
    disableFontFace: true,
    useSystemFonts: false,
    maxImageSize: 0,
  });
  const texts: string[] = [];
  let characters = 0;
  for (let number = from; number <= Math.min(to, document.numPages) && characters <= maxCharacters; number++) {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const pieces = items.map((item) => ("str" in item ? `${item.str}${item.hasEOL ? "\n" : ""}` : ""));
    // One character over the limit, so that the caller detects truncation.
    const text = pieces.join("").slice(0, maxCharacters + 1);
    texts.push(text);
    characters += text.length;
    page.cleanup();
  }
  return { status: "read", pages: document.numPages, texts };
}

parentPort?.once("message", (job: unknown) => {
  const failed = (error: unknown): PdfReading => {
    const locked = error instanceof Error && error.name === passwordError;
    return { status: "unreadable", reason: locked ? "it requires a password" : "it is damaged" };
  };
  void read(job)
    .catch(failed)
    .then((reading) => parentPort?.postMessage(reading));
});
