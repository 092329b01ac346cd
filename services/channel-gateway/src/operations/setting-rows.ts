// The settings as rows with their origin. Pure.

export interface SettingRow {
  /** For example `limits.max_turns`. */
  key: string;
  value: unknown;
  origin: string;
}

/** One row for each value; lists and empty tables are values. Sorted by key. */
export function settingRows(settings: object, originOf: (path: readonly string[]) => string): SettingRow[] {
  const rows = (value: unknown, path: readonly string[]): SettingRow[] => {
    const entries = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
    if (entries.length > 0) return entries.flatMap(([name, each]) => rows(each, [...path, name]));
    return value === undefined ? [] : [{ key: path.join("."), value, origin: originOf(path) }];
  };
  return rows(settings, []).toSorted((a, b) => (a.key < b.key ? -1 : 1));
}
