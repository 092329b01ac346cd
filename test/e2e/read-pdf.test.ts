// Reads a workspace PDF page by page in a turn of a whole cluster.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

/** One page with one line. */
const pdf = `%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>
endobj
4 0 obj
<< /Length 48 >>
stream
BT /F1 12 Tf 20 200 Td (The invoice is paid) Tj ET
endstream
endobj
5 0 obj
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>
endobj
trailer << /Root 1 0 R >>
%%EOF
`;

describe("read", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;

  before(async () => {
    fixture = await startClusterFixture(cleanup, null, { processes: [] });
    await writeFile(join(fixture.cluster.home, "workspace", "invoice.pdf"), pdf);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  test("returns the text of a PDF's page, or the PDF itself", async () => {
    const call = (args: object) => `tool: read ${JSON.stringify({ path: "invoice.pdf", ...args })}`;
    const { results } = await fixture.turn(`${call({ pages: "1" })}\nthen\n${call({})}\nthen\nsay: read`);
    const [text, whole] = results;
    assert.deepEqual([text?.isError, text?.content], [false, "[page 1 of 1]\nThe invoice is paid"]);
    assert.equal(whole?.attachments?.[0]?.mediaType, "application/pdf");
    assert.match(whole.content, /It has 1 page\. Read its text with: read/);
  });
});
