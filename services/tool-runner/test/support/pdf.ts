// Builds PDFs for tests: pages of text, or arbitrary content streams.
import { deflateSync } from "node:zlib";

/** A document with one page per content stream; each stream is compressed `times` times. */
export function pdfOf(streams: readonly Uint8Array[], times = 1): Buffer {
  const pages = streams.map((_, index) => `${4 + index * 2} 0 R`).join(" ");
  const objects: Buffer[] = [
    object(1, "<< /Type /Catalog /Pages 2 0 R >>"),
    object(2, `<< /Type /Pages /Kids [${pages}] /Count ${streams.length} >>`),
    object(3, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"),
  ];
  for (const [index, stream] of streams.entries()) {
    const n = 4 + index * 2;
    const font = "/Resources << /Font << /F1 3 0 R >> >>";
    objects.push(
      object(n, `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents ${n + 1} 0 R ${font} >>`),
      streamObject(n + 1, stream, times),
    );
  }
  return Buffer.concat([Buffer.from("%PDF-1.4\n"), ...objects, Buffer.from("trailer << /Root 1 0 R >>\n%%EOF\n")]);
}

/** A document with these texts as pages. */
export function textPdf(pages: readonly string[]): Buffer {
  return pdfOf(
    pages.map((page) => {
      const lines = page.split("\n").map((line) => `(${line.replaceAll(/[\\()]/g, "\\$&")}) Tj 0 -14 Td`);
      return Buffer.from(page === "" ? "" : `BT /F1 12 Tf 20 280 Td ${lines.join(" ")} ET`);
    }),
  );
}

function object(n: number, body: string): Buffer {
  return Buffer.from(`${n} 0 obj\n${body}\nendobj\n`);
}

function streamObject(n: number, content: Uint8Array, times: number): Buffer {
  let packed = content;
  // The fastest level: some documents have hundreds of MiB.
  for (let time = 0; time < times; time++) packed = deflateSync(packed, { level: 1 });
  const filters = Array.from({ length: times }, () => "/FlateDecode").join(" ");
  return Buffer.concat([
    Buffer.from(`${n} 0 obj\n<< /Length ${packed.length} /Filter [${filters}] >>\nstream\n`),
    packed,
    Buffer.from("\nendstream\nendobj\n"),
  ]);
}
