// A call in one or two lines, for a person who is to say yes or no to it in a chat. Pure.
import type { ReadCall } from "./call.ts";

/** Characters of the argument that is judged by, and of all the others together. */
const maxMainCharacters = 600;
const maxOtherCharacters = 200;

/** The tool and its main argument; below it the other arguments. Nothing in it can hide or reorder what is read. */
export function describeCall(call: ReadCall): string {
  const { tool, input, field } = call;
  const main = field === null ? undefined : input[field];
  const others = Object.entries(input).filter(([name, value]) => name !== field && value !== undefined);
  const head = main === undefined ? tool.name : `${tool.name}: ${cutMiddle(visible(asText(main)), maxMainCharacters)}`;
  if (others.length === 0) return head;
  const share = Math.max(20, Math.floor(maxOtherCharacters / others.length));
  const shown = others
    .slice(0, 8)
    .map(([name, value]) => `${cutMiddle(visible(name), 40)}=${cutMiddle(visible(asText(value)), share)}`);
  const missing = others.length > 8 ? `, and ${others.length - 8} more` : "";
  return `${head}\n(${shown.join(", ")}${missing})`;
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

/** Beginning and end of a long text, with how much is missing between them. */
function cutMiddle(text: string, maxCharacters: number): string {
  const characters = Array.from(text);
  if (characters.length <= maxCharacters) return text;
  const tail = Math.floor(maxCharacters / 3);
  const head = maxCharacters - tail;
  const missing = characters.length - head - tail;
  return `${characters.slice(0, head).join("")} […${missing} characters…] ${characters.slice(-tail).join("")}`;
}
