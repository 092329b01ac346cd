// Settings as TOML lines: tables, strings, numbers, booleans and lists of strings is all there is in them. Pure.

/** The lines of a table and of those below it. */
export function tomlLines(value: object, path: readonly string[] = []): string[] {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined && each !== null);
  const own = entries.filter(([, each]) => !isTable(each));
  const tables = entries.filter((entry): entry is [string, object] => isTable(entry[1]));
  const lines = own.map(([key, each]) => `${keyOf(key)} = ${JSON.stringify(each)}`);
  if (path.length > 0 && (lines.length > 0 || tables.length === 0)) lines.unshift(`[${path.map(keyOf).join(".")}]`);
  for (const [key, table] of tables) {
    const below = tomlLines(table, [...path, key]);
    if (below.length > 0) lines.push(...(lines.length > 0 ? [""] : []), ...below);
  }
  return lines;
}

function isTable(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function keyOf(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}
