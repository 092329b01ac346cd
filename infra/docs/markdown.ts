// Markdown of the generated pages.

/** A table; cells are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  const line = text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ").trim();
  // Outside of code, `<` would begin a tag.
  return line.replaceAll(
    /(`[^`]*`)|</g,
    (found, inCode: string | undefined) => inCode ?? (found === "<" ? "&lt;" : found),
  );
}

/** Code in a table: `<` is not escaped in code. */
export function code(text: string): string {
  return `\`${text}\``;
}
