// A call as the person sees it who approves or denies it: complete, or not at all. Pure.
import type { ReadCall } from "./call.ts";

/**
 * Characters of a description that is sent to a person, at most: about eight messages of a chat platform. A longer call is refused
 * instead of cut, since nobody can approve what they are not shown.
 */
export const maxDescriptionCharacters = 30_000;

/** The tool and its main argument; below it all other arguments. No character of it can hide or reorder what is read. */
export function describeCall({ tool, input, field }: ReadCall): string {
  const main = field === null ? undefined : input[field];
  const others = Object.entries(input).filter(([name, value]) => name !== field && value !== undefined);
  const head = main === undefined ? tool.name : `${tool.name}: ${visible(asText(main))}`;
  if (others.length === 0) return head;
  return `${head}\n(${others.map(([name, value]) => `${visible(name)}=${visible(asText(value))}`).join(", ")})`;
}

/** Why a call cannot be put to a person, for the model; null when its description can be sent whole. */
export function tooLongToApprove(description: string): string | null {
  if (description.length <= maxDescriptionCharacters) return null;
  return `The call needs approval and is too long to be approved: a person would have to read ${description.length} characters, and at most ${maxDescriptionCharacters} are sent. Split it into smaller calls; write a long program to a file first, then run the file.`;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Line ends as ⏎, and every character that is not seen or changes the order of what is read as its code. */
function visible(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r?\n/g, "⏎")
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Variation_Selector}]|(?! )\p{Zs}/gu, (character) => {
      return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    });
}
