import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { allowsType, attachmentName, AttachmentSchema, ParleySettingsSchema, sizeText } from "../src/index.ts";

test("attachmentName returns a visible, bounded name without a path for any input", () => {
  const hostile = fc.oneof(
    fc.string({ unit: "binary", maxLength: 400 }),
    fc
      .array(fc.constantFrom("..", "/", "\\", "\0", "\n", "\u202e", ".", "a", ".pdf", "\ud800", " "), { maxLength: 60 })
      .map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(hostile, (given) => {
      const name = attachmentName(given, "file");
      assert.ok(AttachmentSchema.shape.name.safeParse(name).success);
      assert.ok(
        name.isWellFormed() && !/[\\/\p{C}\p{Zl}\p{Zp}]/u.test(name) && !name.startsWith("."),
        JSON.stringify(name),
      );
      assert.equal(attachmentName(name, "file"), name);
    }),
  );
});

// design: 000.10b
test("an attachment has its hash as the id, and no path", () => {
  const file = { sha256: "0".repeat(64), mediaType: "text/plain", name: "a.txt", bytes: 1 };
  assert.deepEqual(AttachmentSchema.parse({ ...file, path: "/home/a.txt" }), file);
});

test("attachmentName keeps letters of all scripts, spaces and parentheses", () => {
  assert.equal(attachmentName("Müller 世界 (2).pdf", "file"), "Müller 世界 (2).pdf");
  assert.equal(attachmentName("C:\\Users\\a\\report.docx", "file"), "report.docx");
  assert.equal(attachmentName("../../etc/passwd", "file"), "passwd");
  assert.equal(attachmentName("...", "photo"), "photo");
  assert.equal(attachmentName(undefined, "photo"), "photo");
  assert.equal(attachmentName(`${"x".repeat(300)}.tar`, "file"), `${"x".repeat(196)}.tar`);
});

test("allowsType matches a type by name, by kind and by *", () => {
  const allowed = (patterns: string[]) =>
    ["image/png", "image/svg+xml", "imagex/png", "text/plain"].filter((type) => allowsType(patterns, type));
  assert.deepEqual(allowed(["image/*"]), ["image/png", "image/svg+xml"]);
  assert.deepEqual(allowed(["image/png", "text/plain"]), ["image/png", "text/plain"]);
  assert.equal(allowed(["*"]).length, 4);
  assert.deepEqual(allowed([]), []);
});

test("attachment settings reject values outside of their limits and name the problem", () => {
  const { attachments } = ParleySettingsSchema.parse({});
  assert.deepEqual(attachments, { max_bytes: 20_971_520, types: ["*"], keep_hours: 24 });
  for (const wrong of [
    { max_bytes: 100_000_000 },
    { types: ["image"] },
    { keep_hours: 0 },
    { transcription: { url: "ftp://x", model: "m" } },
    { transcription: { url: "http://x/v1" } },
    { transcription: { url: "http://x/v1", model: "m", command: ["whisper", "{file}"] } },
    { transcription: { command: ["whisper"] } },
    { transcription: { command: ["./whisper", "{file}"] } },
    { transcription: { command: ["whisper", "{file}"], key_env: "KEY" } },
  ]) {
    assert.equal(ParleySettingsSchema.safeParse({ attachments: wrong }).success, false, JSON.stringify(wrong));
  }
});

test("sizeText formats bytes in readable units", () => {
  assert.deepEqual([0, 1023, 1024, 20 * 1024 * 1024].map(sizeText), ["0 bytes", "1023 bytes", "1.0 KiB", "20.0 MiB"]);
});
