// Adapts Markdown to what Discord renders: it has no tables and no headings below the third level. Pure.

const maxContent = 2_000;
const fence = /^( {0,3})(`{3,}|~{3,})/;
const deepHeading = /^ {0,3}#{4,6}[ \t]+(.*?)[ \t]*#*$/;
const tableRule = /^ *\|?(?: *:?-+:? *\|)+ *(?::?-+:? *)?\|? *$/;

/** Character references of Markdown that Discord shows as they are, and code, in which they are text. */
const references = /(`+)(?:(?!\1).)+?\1|&(?:(amp|lt|gt|quot|apos|nbsp)|#(\d{1,7})|#x([\da-f]{1,6}));/gi;
const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** The text itself when the adapted one would be longer than a message. */
export function discordMarkdown(markdown: string): string {
  const adapted = adapt(markdown.split("\n")).join("\n");
  return adapted.length <= maxContent ? adapted : markdown;
}

/** Tables become code blocks, which keep their columns; deep headings become bold. */
function adapt(lines: readonly string[]): string[] {
  const out: string[] = [];
  let open: string | null = null;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const marker = fence.exec(line)?.[2];
    if (marker !== undefined) open = open === null ? marker : line.trim().startsWith(open) ? null : open;
    if (open === null && line.includes("|") && tableRule.test(lines[at + 1] ?? "")) {
      let end = at + 2;
      while ((lines[end] ?? "").includes("|")) end++;
      out.push("```", ...lines.slice(at, end), "```");
      at = end - 1;
    } else {
      const heading = open === null ? deepHeading.exec(line)?.[1] : undefined;
      const shown = heading === undefined || heading === "" ? line : `**${heading.replaceAll("**", "")}**`;
      out.push(open === null && marker === undefined ? withoutReferences(shown) : shown);
    }
  }
  return out;
}

function withoutReferences(line: string): string {
  return line.replace(references, (written, _code, name?: string, decimal?: string, hex?: string) => {
    if (name !== undefined) return named[name.toLowerCase()] ?? written;
    const point = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
    return point >= 32 && point <= 0x10_ff_ff ? String.fromCodePoint(point).toWellFormed() : written;
  });
}
