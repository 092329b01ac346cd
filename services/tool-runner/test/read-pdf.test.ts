// `read` of PDFs, pictures and notebooks: results, limits and hostile documents.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { ToolResult } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import { notebookText } from "../src/text/read-notebook.ts";
import { pageRange, presentPages } from "../src/tools/read-pdf.ts";
import { readPdfPages } from "../src/tools/read-pdf-pages.ts";
import { pdfOf, textPdf } from "./support/pdf.ts";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let workspace: string;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  await fixture.runner("one");
  ({ workspace } = await fixture.config("one"));
  await mkdir(workspace, { recursive: true });
});
after(() => cleanup[Symbol.asyncDispose]());

async function read(input: object): Promise<ToolResult> {
  const [request] = await fixture.plan([{ tool: "read", class: "pure", input }]);
  assert.ok(request);
  return (await fixture.call(request)).result;
}

const put = (name: string, content: string | Uint8Array) => writeFile(join(workspace, name), content);
const never = new AbortController().signal;
const mebibyte = 1024 * 1024;
const pagesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => `This is page ${index + 1}.\nIt has two lines.`);

test("returns the requested PDF pages as text with the call for the next ones", async () => {
  await put("report.pdf", textPdf(pagesOf(30)));
  const { content, isError, attachments } = await read({ path: "report.pdf", pages: "2-3" });
  assert.deepEqual([isError, attachments], [false, undefined]);
  assert.equal(
    content,
    [
      "[page 2 of 30]\nThis is page 2.\nIt has two lines.",
      "[page 3 of 30]\nThis is page 3.\nIt has two lines.",
      '[Pages 2 to 3 of 30. Read on with: read({"path":"report.pdf","pages":"4-23"})]',
    ].join("\n"),
  );
  const last = await read({ path: "report.pdf", pages: "30" });
  assert.equal(last.content, "[page 30 of 30]\nThis is page 30.\nIt has two lines.");
});

test("shows a short PDF directly, and the text of the first 20 pages of a long one", async () => {
  await put("short.pdf", textPdf(pagesOf(3)));
  const short = await read({ path: "short.pdf" });
  assert.equal(short.attachments?.[0]?.mediaType, "application/pdf");
  assert.match(short.content, /It has 3 pages\. Read its text with: read\(\{"path":"short\.pdf","pages":"1-3"\}\)$/);

  await put("long.pdf", textPdf(pagesOf(21)));
  const long = await read({ path: "long.pdf" });
  assert.equal(long.attachments, undefined);
  assert.match(
    long.content,
    /\[page 20 of 21\]\nThis is page 20[^]*Read on with: read\(\{"path":"long\.pdf","pages":"21"\}\)\]$/,
  );
  assert.doesNotMatch(long.content, /page 21 of/);
});

test("shows a PDF without text directly, if possible", async () => {
  await put("scan.pdf", textPdf(["", ""]));
  const { attachments, content } = await read({ path: "scan.pdf", pages: "1-2" });
  assert.equal(attachments?.[0]?.name, "scan.pdf");
  assert.match(content, /These pages contain no text/);
  await put("large-scan.pdf", Buffer.concat([textPdf([""]), Buffer.alloc(21 * mebibyte, "%")]));
  const large = await read({ path: "large-scan.pdf", pages: "1" });
  assert.equal(large.isError, true);
  assert.match(
    large.content,
    /contain no text, only pictures\. Convert its pages to pictures with exec \(e\.g\. pdftoppm/,
  );
});

test("refuses invalid pages with an example", async () => {
  await put("three.pdf", textPdf(pagesOf(3)));
  for (const pages of ["", "0", "0-3", "3-1", "1-21", "x", "1,2", "-3", "1-"]) {
    const { isError, content } = await read({ path: "three.pdf", pages });
    assert.equal(isError, true, pages);
    assert.match(content, /pages: one page or a range of at most 20, such as "3" or "1-5"/);
  }
  assert.match((await read({ path: "three.pdf", pages: "4-5" })).content, /has 3 pages; page 4 is past its end/);
  await put("plain.txt", "hello\n");
  assert.match((await read({ path: "plain.txt", pages: "1" })).content, /is not a PDF and has no pages/);
  assert.match((await read({ path: "memory/none.md", pages: "1" })).content, /is not a PDF/);
});

test("shows an unreadable PDF directly, or reports it when pages were requested", async () => {
  await put("broken.pdf", "%PDF-1.4\n% nothing\ntrailer <<>>\n%%EOF\n");
  const pages = await read({ path: "broken.pdf", pages: "1" });
  assert.equal(pages.isError, true);
  assert.match(
    pages.content,
    /cannot be read: it is damaged\. View the document itself with read\(\{"path":"broken\.pdf"\}\)/,
  );
  const whole = await read({ path: "broken.pdf" });
  assert.equal(whole.attachments?.[0]?.mediaType, "application/pdf");
});

test("refuses a too large picture with advice", async () => {
  const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const png = Buffer.from(dot, "base64");
  await put("large.png", Buffer.concat([png, Buffer.alloc(4 * mebibyte)]));
  const { isError, content } = await read({ path: "large.png" });
  assert.equal(isError, true);
  assert.match(content, /has 4\.0 MiB; you can view pictures of at most 3\.8 MiB\. Make it smaller[^]*use attach/);
  await put("small.png", png);
  assert.equal((await read({ path: "small.png" })).attachments?.[0]?.mediaType, "image/png");
});

test("shows a notebook by cell, and a file that is not a notebook as text", async () => {
  const cells = [
    { cell_type: "markdown", source: ["# Title\n", "words"] },
    {
      cell_type: "code",
      source: "print(1)",
      execution_count: 2,
      outputs: [
        { output_type: "stream", name: "stdout", text: ["1\n"] },
        { output_type: "display_data", data: { "image/png": "AAAA", "text/plain": "<Figure>" } },
        { output_type: "error", ename: "ValueError", evalue: "no", traceback: [] },
      ],
    },
  ];
  await put("work.ipynb", JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells }));
  const { content } = await read({ path: "work.ipynb" });
  assert.deepEqual(
    content.split("\n").map((line) => line.replace(/^\s*\d+\t/, "")),
    [
      "[cell 1: markdown]",
      "# Title",
      "words",
      "",
      "[cell 2: code, run as [2]]",
      "print(1)",
      "[output of cell 2]",
      "1",
      "<Figure>",
      "[image/png, not shown]",
      "ValueError: no",
    ],
  );
  await put("other.ipynb", '{"cells": 1}\n');
  assert.match((await read({ path: "other.ipynb" })).content, /\{"cells": 1\}/);
});

test("property: renders any notebook text within the limits without throwing", () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void notebookText(text)));
  const loud = { cell_type: "code", source: "", outputs: [{ output_type: "stream", text: "x".repeat(100_000) }] };
  assert.ok((notebookText(JSON.stringify({ nbformat: 4, cells: [loud] })) ?? "").length < 5_000);
});

test("property: fits the pages and continues with the first missing one", () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(lengths, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 0, max: 30 }), (sizes, from, more) => {
      const pages = from - 1 + sizes.length + more;
      const text = presentPages(
        "a.pdf",
        { from, to: from + 19 },
        { status: "read", pages, texts: sizes.map((size) => "x".repeat(size)) },
      );
      assert.ok(text.length < 55_000);
      const shown = [...text.matchAll(/^\[page (\d+) of/gm)].map((match) => Number(match[1]));
      assert.deepEqual(
        shown,
        Array.from({ length: shown.length }, (_, index) => from + index),
      );
      const next = from + shown.length;
      assert.equal(text.includes(`"pages":"${next}`), next <= pages);
    }),
    { numRuns: 50 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9_999 }), fc.integer({ min: 0, max: 40 }), (from, more) => {
      const range = pageRange(`${from}-${from + more}`);
      assert.deepEqual(range, more < 20 ? { from, to: from + more } : undefined);
    }),
  );
});

let slowDocument: Buffer | undefined;
/** A document with millions of texts on its page, built once. */
const slowPdf = () =>
  (slowDocument ??= pdfOf([Buffer.from("BT /F1 12 Tf ".concat("(a) Tj 1 0 Td ".repeat(4_000_000), "ET"))]));

test("limits memory and time of a hostile document to its thread", async () => {
  // Hundreds of MiB of spaces, compressed twice to a few KiB.
  const bomb = pdfOf([Buffer.alloc(400 * mebibyte, " ")], 2);
  assert.ok(bomb.length < 100_000, `${bomb.length}`);
  // Not the time ends it, however busy the machine is.
  const limits = { timeoutMs: 600_000, maxMemoryBytes: 128 * mebibyte };
  const answer = await readPdfPages(bomb, { from: 1, to: 1 }, 1_000, never, limits);
  assert.deepEqual(answer, { status: "unreadable", reason: "reading it takes too much memory" });

  const late = await readPdfPages(slowPdf(), { from: 1, to: 1 }, 1_000, never, { ...limits, timeoutMs: 200 });
  assert.deepEqual(late, { status: "unreadable", reason: "reading it takes too much time" });

  const { texts } = { texts: [], ...(await readPdfPages(textPdf(["still here"]), { from: 1, to: 1 }, 1_000, never)) };
  assert.deepEqual(texts, ["still here"]);
});

test("ends the thread when cancelled, also while it is queued", async () => {
  const slow = slowPdf();
  const cancel = new AbortController();
  const calls = Array.from({ length: 4 }, () => readPdfPages(slow, { from: 1, to: 1 }, 1_000, cancel.signal));
  const outcomes = Promise.allSettled(calls);
  cancel.abort(new Error("no more"));
  for (const outcome of await outcomes) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof Error);
    assert.equal(outcome.reason.message, "no more");
  }
});

test("property: never throws for a damaged document", async () => {
  const whole = textPdf(pagesOf(2));
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.uint8Array({ minLength: 1, maxLength: 40 }), async (at, noise) => {
      const damaged = Buffer.from(whole);
      damaged.set(noise.subarray(0, whole.length - at), at);
      const answer = await readPdfPages(damaged, { from: 1, to: 2 }, 10_000, never);
      assert.ok(answer.status === "read" || answer.reason !== "");
    }),
    { numRuns: 15 },
  );
});
