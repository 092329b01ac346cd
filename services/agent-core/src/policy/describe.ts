// Describes a call for the person who approves or denies it. The description is complete; a call that is too long is refused. Pure.
import type { ParsedCall } from "./parsed-call.ts";

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
