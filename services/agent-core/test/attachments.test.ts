// How attachments appear in prompts: as content if the model supports it, otherwise as a line of text.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { storeBlob, type Bus } from "@parley/bus";
import type { Attachment, Part } from "@parley/contracts";
import { Cleanup, startStoreStack } from "@parley/testing";
import * as fc from "fast-check";
import { unknownCapabilities, type Capabilities } from "../src/model/anthropic/capabilities.ts";
import { toRequest as toAnthropic } from "../src/model/anthropic/wire.ts";
import { shownKind } from "../src/model/render-attachment.ts";
import { Contents, selectContents } from "../src/model/attachment-contents.ts";
import { initialDialect, type Dialect } from "../src/model/openai/dialect.ts";
import { toRequest as toOpenAi } from "../src/model/openai/wire.ts";
import { ModelError, type ModelProvider, type ModelReply, type ModelRequest } from "../src/model/provider.ts";
import { withAttachments } from "../src/model/with-attachments.ts";

const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const attachment = (mediaType: string, name: string, content: Buffer): Attachment => ({
  sha256: hashOf(content),
  mediaType,
  name,
  bytes: content.length,
});
const blob = (each: Attachment): Part => ({ type: "blob", ...each });
const result = (id: string, attachments: Attachment[], content = "here"): Part => ({
  type: "tool_result",
  id,
  name: "read",
  content,
  isError: false,
  attachments,
});

const jpeg = Buffer.concat([Buffer.from("ffd8ffe0", "hex"), Buffer.from("picture")]);
const pdf = Buffer.from("%PDF-1.4 report");
const text = Buffer.from("line one\nline two");
const picture = attachment("image/jpeg", "a.jpg", jpeg);
const report = attachment("application/pdf", "r.pdf", pdf);
const notes = attachment("text/plain", "n.txt", text);
const contents = new Map([jpeg, pdf, text].map((each) => [hashOf(each), each.toString("base64")]));
const line = ({ name, mediaType, bytes, sha256 }: Attachment, more = "") =>
  `[attachment "${name}", ${mediaType}, ${bytes} bytes, id ${sha256}${more}]`;

const requestOf = (parts: Part[], known: ModelRequest["contents"] = contents): ModelRequest => ({
  system: "be kind",
  tools: [],
  messages: [{ role: "user", parts }],
  maxOutputTokens: 100,
  contents: known,
});
const claude = (parts: Part[], can: Capabilities = unknownCapabilities, known = contents) => {
  const options = { model: "m", thinking: "adaptive", display: "updates" } as const;
  const [message] = toAnthropic(requestOf(parts, known), options, can).messages;
  assert.ok(Array.isArray(message?.content));
  return message.content.map((block) => {
    const { cache_control: _, ...rest } = block as typeof block & { cache_control?: unknown };
    return rest;
  });
};
const limit = { field: "max_tokens", atMostTokens: Number.POSITIVE_INFINITY } as const;
const gpt = (parts: Part[], dialect: Dialect = initialDialect("https://api.openai.com/v1"), known = contents) =>
  toOpenAi(requestOf(parts, known), "m", limit, dialect).messages.slice(1);

describe("Claude", () => {
  test("shows images, PDFs and texts as such, each after the line that names it", () => {
    assert.deepEqual(claude([blob(picture), blob(report), blob(notes)]), [
      { type: "text", text: line(picture) },
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: jpeg.toString("base64") } },
      { type: "text", text: line(report) },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: pdf.toString("base64") } },
      { type: "text", text: line(notes, "; its text follows") },
      { type: "text", text: "line one\nline two" },
    ]);
  });

  test("shows a tool's attachments inside its result and keeps text-only results as strings", () => {
    const blocks = claude([result("a", [picture]), { ...result("b", []), attachments: undefined } as Part]);
    assert.deepEqual(blocks, [
      {
        type: "tool_result",
        tool_use_id: "a",
        content: [
          { type: "text", text: "here" },
          { type: "text", text: line(picture) },
          { type: "image", source: { type: "base64", media_type: "image/jpeg", data: jpeg.toString("base64") } },
        ],
      },
      { type: "tool_result", tool_use_id: "b", content: "here" },
    ]);
  });

  test("names attachments that are unsupported, unknown, above 5 MiB of base64 or missing", () => {
    const blind = { ...unknownCapabilities, images: false, pdfs: false };
    assert.deepEqual(claude([blob(picture), blob(report)], blind), [
      { type: "text", text: line(picture, ": it cannot be shown to you") },
      { type: "text", text: line(report, ": it cannot be shown to you") },
    ]);
    const zip = attachment("application/zip", "z.zip", Buffer.from("PK"));
    const large = { ...picture, bytes: 4 * 1024 * 1024 };
    const shown = claude([blob(zip), blob(large)], unknownCapabilities);
    assert.ok(shown.every((block) => block.type === "text" && block.text.endsWith(": it cannot be shown to you]")));
    assert.deepEqual(claude([blob(picture)], unknownCapabilities, new Map()), [
      { type: "text", text: line(picture, ": its content is not included here") },
    ]);
  });

  test("omits attachments that a call only sent to people", () => {
    const sent = { ...result("a", []), attachments: undefined, sent: [picture] } as Part;
    assert.deepEqual(claude([sent]), [{ type: "tool_result", tool_use_id: "a", content: "here" }]);
  });
});

describe("OpenAI's format", () => {
  const url = `data:image/jpeg;base64,${jpeg.toString("base64")}`;

  test("shows images and files as parts, and those of a tool after all results", () => {
    assert.deepEqual(gpt([result("a", [picture]), result("b", [report]), blob(notes)]), [
      { role: "tool", tool_call_id: "a", content: "here" },
      { role: "tool", tool_call_id: "b", content: "here" },
      {
        role: "user",
        content: [
          { type: "text", text: line(picture) },
          { type: "image_url", image_url: { url } },
          { type: "text", text: line(report) },
          {
            type: "file",
            file: { filename: "r.pdf", file_data: `data:application/pdf;base64,${pdf.toString("base64")}` },
          },
          { type: "text", text: line(notes, "; its text follows") },
          { type: "text", text: "line one\nline two" },
        ],
      },
    ]);
  });

  test("names attachments as text for servers without images or documents", () => {
    const plain = { ...initialDialect("http://127.0.0.1:1/v1"), images: false };
    assert.deepEqual(gpt([blob(picture), blob(report)], plain), [
      {
        role: "user",
        content: `${line(picture, ": it cannot be shown to you")}\n\n${line(report, ": it cannot be shown to you")}`,
      },
    ]);
  });
});

test("shows the newest attachments first within the limit and omits the oldest", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 3_000_000 }), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 0, max: 10_000_000 }), (bytes, max) => {
      const all = bytes.map((size, index) => ({ ...picture, sha256: String(index).padStart(64, "0"), bytes: size }));
      const messages = all.map((each) => ({ role: "user" as const, parts: [blob(each)] }));
      const chosen = selectContents(messages, max);
      const shown = all.filter(({ sha256 }) => chosen.includes(sha256));
      assert.ok(shown.reduce((sum, each) => sum + each.bytes, 0) <= max);
      assert.deepEqual(shown, all.slice(all.length - shown.length));
    }),
  );
});

test("fetches and counts a content once when it is named several times", () => {
  const messages = [1, 2, 3].map(() => ({ role: "user" as const, parts: [blob(picture), result("a", [picture])] }));
  assert.deepEqual(selectContents(messages, picture.bytes), [picture.sha256]);
});

test("decides by type and size what can be shown", () => {
  assert.deepEqual(
    [
      shownKind("image/png", 3_932_160),
      shownKind("image/png", 3_932_161),
      shownKind("application/pdf", 20_971_520),
      shownKind("application/pdf", 20_971_521),
      shownKind("text/plain", 51_201),
      shownKind("image/svg+xml", 10),
      shownKind("audio/ogg", 10),
    ],
    ["image", "note", "pdf", "note", "note", "note", "note"],
  );
});

describe("with a real store", () => {
  const cleanup = new Cleanup();
  let gateway: Bus;
  let core: Bus;
  before(async () => {
    const stack = await startStoreStack(cleanup);
    [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const reply: ModelReply = { parts: [], stopReason: "end_turn", rawStopReason: "end_turn", usage: null, model: "m" };
  /** A model that refuses some contents, with a record of what it was shown. */
  function choosy(refuses: (shown: string[]) => ModelError | undefined) {
    const shown: string[][] = [];
    const provider: ModelProvider = {
      name: "test",
      model: "m",
      priceList: "free",
      note: () => null,
      prepare: async () => undefined,
      size: async () => ({ contextTokens: null, maxOutputTokens: null }),
      async stream(request) {
        const hashes = [...(request.contents?.keys() ?? [])];
        shown.push(hashes);
        const error = refuses(hashes);
        if (error !== undefined) throw error;
        return reply;
      },
    };
    return { shown, provider };
  }
  const on = { delta: () => undefined, alive: () => undefined };
  const never = new AbortController().signal;

  test("fetches contents by hash and omits those that the store does not have", async () => {
    const content = Buffer.concat([jpeg, randomBytes(400_000)]);
    await storeBlob(gateway, content);
    const kept = attachment("image/jpeg", "k.jpg", content);
    const gone = { ...picture, sha256: "0".repeat(64) };
    const loaded = await new Contents(core).of([{ role: "user", parts: [blob(kept), result("a", [gone])] }]);
    assert.deepEqual([...loaded], [[kept.sha256, content.toString("base64")]]);
  });

  test("omits a refused content from then on and keeps contents accepted before", async () => {
    const [good, bad] = [Buffer.concat([jpeg, randomBytes(8)]), Buffer.concat([jpeg, randomBytes(8)])];
    for (const content of [good, bad]) await storeBlob(gateway, content);
    const { provider, shown } = choosy((hashes) =>
      hashes.includes(hashOf(bad)) ? new ModelError("invalid", "Could not process image") : undefined,
    );
    const seeing = withAttachments(provider, new Contents(core));
    const ask = (...parts: Buffer[]) =>
      seeing.stream(
        requestOf(
          parts.map((each) => blob(attachment("image/jpeg", "x.jpg", each))),
          undefined,
        ),
        on,
        never,
      );
    await ask(good);
    await ask(good, bad);
    await ask(good, bad);
    assert.deepEqual(shown, [[hashOf(good)], [hashOf(bad), hashOf(good)], [hashOf(good)], [hashOf(good)]]);
  });

  test("omits contents accepted before as well when the refusal remains without the new ones", async () => {
    const [large, next] = [Buffer.concat([jpeg, randomBytes(10)]), Buffer.concat([jpeg, randomBytes(10)])];
    for (const content of [large, next]) await storeBlob(gateway, content);
    const { provider, shown } = choosy((hashes) =>
      shown.length > 1 && hashes.includes(hashOf(large))
        ? new ModelError("invalid", "image dimensions exceed the maximum for requests with many images")
        : undefined,
    );
    const seeing = withAttachments(provider, new Contents(core));
    const ask = (...parts: Buffer[]) => {
      const blobs = parts.map((each) => blob(attachment("image/jpeg", "x.jpg", each)));
      return seeing.stream(requestOf(blobs, undefined), on, never);
    };
    await ask(large);
    assert.equal(await ask(large, next), reply);
    assert.deepEqual(shown, [[hashOf(large)], [hashOf(next), hashOf(large)], [hashOf(large)], []]);
  });

  test("ignores refusals that are not about a content", async () => {
    const content = Buffer.concat([jpeg, randomBytes(9)]);
    await storeBlob(gateway, content);
    const { provider, shown } = choosy(() => new ModelError("rate_limit", "image tokens per minute"));
    const seeing = withAttachments(provider, new Contents(core));
    const request = requestOf([blob(attachment("image/jpeg", "x.jpg", content))], undefined);
    await assert.rejects(seeing.stream(request, on, never), /image tokens per minute/);
    assert.equal(shown.length, 1);
  });
});
