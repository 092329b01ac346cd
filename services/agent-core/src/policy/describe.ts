// Describes a call for the person who approves or denies it, and the question about it. The description is complete; a call that is too
// long is refused. Pure.
import type { ParsedCall } from "./parsed-call.ts";
import type { AlwaysRules } from "./session-rules.ts";

/**
 * Maximum characters of a description that is sent to a person: about eight messages of a chat platform. A longer call is refused,
 * not truncated, since people cannot approve what they cannot see.
 */
export const maxDescriptionCharacters = 30_000;

/** The tool and its main argument, followed by all other arguments. Escapes characters that could hide or reorder text. */
export function describeCall({ tool, input, field }: ParsedCall): string {
  const main = field === null ? undefined : input[field];
  const others = Object.entries(input).filter(([name, value]) => name !== field && value !== undefined);
  const head = main === undefined ? tool.name : `${tool.name}: ${visible(asText(main))}`;
  if (others.length === 0) return head;
  return `${head}\n(${others.map(([name, value]) => `${visible(name)}=${visible(asText(value))}`).join(", ")})`;
}

/** For the model: why approval of the call cannot be requested; null if its description fits. */
export function tooLongToApprove(description: string): string | null {
  if (description.length <= maxDescriptionCharacters) return null;
  return `Not run: the call requires approval and is too long to be approved. Its description has ${description.length} characters; the limit is ${maxDescriptionCharacters}. Split it into smaller calls; write a long program to a file first, then run the file.`;
}

/** The text that asks a person to approve a call. The call is in a code fence, so that no channel interprets it as markup. */
export function questionText(question: {
  id: string;
  tool: string;
  summary: string;
  reason: string;
  expiresInMs: number;
  always: AlwaysRules | null;
}): string {
  const { id, tool, summary, reason, expiresInMs, always } = question;
  const minutes = Math.max(1, Math.round(expiresInMs / 60_000));
  const longest = Math.max(2, ...[...summary.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return [
    `May I use ${tool}?`,
    `${fence}\n${summary}\n${fence}`,
    reason,
    `Answer y, n, or n with a reason; or /approve ${id}${always === null ? "" : ` (or /approve ${id} always)`}, or /deny ${id}. Without an answer in ${minutes} min it is denied.`,
    ...(always === null ? [] : [alwaysText(id, always)]),
  ].join("\n");
}

/** Longer rules would repeat the call shown above. */
const maxShownRules = 300;

function alwaysText(id: string, { list, rules }: AlwaysRules): string {
  const shown = rules.join(", ");
  const what = shown.length > maxShownRules ? "exactly this call" : shown;
  const where = list === "allow" ? "in turns of this session without untrusted content" : "in this session";
  return `/approve ${id} always also allows ${where}: ${what}`;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Replaces line ends by ⏎, and invisible or reordering characters by their code points. */
function visible(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r?\n/g, "⏎")
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Variation_Selector}]|(?! )\p{Zs}/gu, (character) => {
      return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    });
}
