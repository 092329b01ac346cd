// Commands as people type them on a channel: some clients keep `/` for themselves, so their channel has another prefix. Pure.
import { slashCommands } from "@parley/contracts";

const names = slashCommands.map(({ name }) => name.slice(1)).join("|");
const command = new RegExp(`(?<![\\w/.:])/(?=(?:${names})\\b)`, "g");

/** The text with the channel's prefix at every command, outside of code blocks. */
export function typedCommands(text: string, prefix: string | undefined): string {
  if (prefix === undefined) return text;
  return text
    .split(/(^(`{3,})[^\n]*\n[^]*?\n\2)/m)
    .filter((_, index) => index % 3 !== 2)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(command, prefix)))
    .join("");
}
