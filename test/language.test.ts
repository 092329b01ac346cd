// Words that do not appear in code, texts and documentation, because each has a standard term.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";

const root = resolve(import.meta.dirname, "..");

/** Each is matched as a whole word, in any case. The replacement is what the failure message proposes. */
const banned: Record<string, string> = {
  anew: "again",
  "once more": "again",
  whoever: "the caller, any …",
  whatever: "any …",
  whichever: "any …",
  beside: "next to, along with",
  besides: "in addition",
  stands: "is, is stored in",
  stood: "was, was stored in",
  shall: "must",
  reckon: "compute",
  "a yes": "an approval",
  "a no": "a denial",
  "put into words": "formatted",
  "in words": "described",
  "earlier life": "previous instance",
  "made shorter": "compacted",
  outsiders: "untrusted senders",
  strangers: "untrusted senders",
  he: "they",
  his: "their",
  him: "them",
  wall: "sandbox",
  desk: "the name of its role",
  doorway: "access policy",
  keeper: "the name of its role",
  house: "the name of its role",
  bury: "dead-letter",
};

const patterns = [
  "README.md",
  "CONTRIBUTING.md",
  "docs/**/*.md",
  "presets/*.toml",
  "packages/*/src/**/*.{ts,tsx,css}",
  "packages/*/test/**/*.{ts,tsx}",
  "packages/*/index.html",
  "services/*/src/**/*.ts",
  "services/*/test/**/*.ts",
  "services/*/migrations/*.sql",
  "infra/**/*.{ts,mjs,yml,conf}",
  "k8s/**/*.yaml",
  "test/**/*.ts",
  "bench/**/*.ts",
  "*.yml",
  "Dockerfile",
];

const exempt = new Set([
  "test/language.test.ts", // quotes the words
  "docs/licenses.md", // contains names of packages
  "packages/contracts/src/untrusted-content.ts", // stored messages are recognized by its text
]);

/** Applied migrations never change. The check covers those after this number. */
const lastUncheckedMigration = 24;

const isChecked = (path: string) =>
  !exempt.has(path) && !(Number(/^services\/store\/migrations\/(\d+)_/.exec(path)?.[1]) <= lastUncheckedMigration);

const texts = globSync(patterns, { cwd: root, exclude: (name) => name === "node_modules" || name === "dist" })
  .filter(isChecked)
  // Standard terms that contain a banned word.
  .map((path) => ({
    path,
    text: readFileSync(join(root, path), "utf8").replaceAll(/wall(?=[- ](?:clock|time))/gi, "…."),
  }));

/** Where a word occurs, as `path:line`. */
function occurrences(word: string): string[] {
  const pattern = new RegExp(`\\b${word.replaceAll(" ", "\\s+")}\\b`, "gi");
  return texts.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map((match) => `${path}:${text.slice(0, match.index).split("\n").length}`),
  );
}

describe("language", () => {
  test("reads the whole repository", () => assert.ok(texts.length > 800, `${texts.length} files`));

  for (const [word, replacement] of Object.entries(banned)) {
    test(`does not contain "${word}"`, () => assert.deepEqual(occurrences(word), [], `write "${replacement}"`));
  }
});
