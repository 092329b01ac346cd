// Cases about long answers: every message within the limits of the channel, nothing lost, in order.
import assert from "node:assert/strict";
import type { TextLimits } from "@parley/contracts";
import { seenAfter, type ConformanceCase } from "./subject.ts";

const withoutSpace = (text: string) => text.replaceAll(/\s/g, "");

function lengthOf(text: string, unit: TextLimits["lengthUnit"]): number {
  if (unit === "bytes") return Buffer.byteLength(text);
  return unit === "utf16" ? text.length : Array.from(text).length;
}

/** A long text that loses only white space, and markup that is no `unit`. */
function splits(name: string, text: string, unit = /[^]/gu): ConformanceCase {
  return {
    group: "limits",
    name,
    run: async (subject) => {
      const messages = await seenAfter(subject, text);
      assert.ok(messages.length > 1);
      for (const message of messages) {
        assert.ok(message.text.isWellFormed());
        const length = lengthOf(message.text, subject.limits.lengthUnit);
        assert.ok(length <= subject.limits.maxLength, `${length} ${subject.limits.lengthUnit}`);
        if (subject.limits.singleLine === true) assert.ok(!message.text.includes("\n"));
      }
      const shown = withoutSpace(messages.map((message) => message.text).join(""));
      assert.deepEqual(shown.match(unit), withoutSpace(text).match(unit));
    },
  };
}

export const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");
const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join("\n");
const filler = "with some more text ".repeat(4).trim();

export const splitCases: readonly ConformanceCase[] = [
  splits("sends a long answer in order, within the limit", words(2_000)),
  splits("splits a word that is longer than a message", "x".repeat(10_000)),
  splits("never splits a character outside of the basic plane", "😀".repeat(4_000)),
  splits(
    "keeps the order of many lines",
    lines(70, (line) => `line ${line} ${filler}`),
    /line\d+/g,
  ),
  splits(
    "splits a long list between its items",
    lines(70, (item) => `- item${item} ${filler}`),
    /item\d+/g,
  ),
  splits("splits a long code block", `\`\`\`\n${lines(70, (row) => `row${row} ${filler}`)}\n\`\`\``, /row\d+/g),
  splits("splits long bold text", `**${words(1_000)}**`, /word\d+/g),
  splits(
    "splits a long table",
    `| a | b |\n| --- | --- |\n${lines(60, (row) => `| cell${row}a | ${filler} |`)}`,
    /cell\d+a/g,
  ),
  splits("keeps to the limit with characters that are escaped", `${"<&> ".repeat(2_500)}end`, /[<&>]/g),
  splits("keeps letters with combining marks whole", "e\u0301".repeat(5_000), /e\u0301/gu),
];
