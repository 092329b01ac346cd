// Merges layers of settings (tables recursively; lists and values are replaced) and finds the source of a value. Pure.

export type Table = Readonly<Record<string, unknown>>;

export interface SettingsLayer {
  /** For display: a file's name, `preset goat`, a variable, a flag. */
  source: string;
  table: Table;
}

export function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** `layers`: highest precedence last. */
export function mergeLayers(layers: readonly SettingsLayer[]): Table {
  return layers.reduce<Table>((merged, { table }) => merge(merged, table), {});
}

function merge(low: Table, high: Table): Table {
  const entries = Object.entries(high).map(([key, value]): [string, unknown] => {
    const below = Object.hasOwn(low, key) ? low[key] : undefined;
    return [key, isTable(value) ? merge(isTable(below) ? below : {}, value) : value];
  });
  return Object.fromEntries([...Object.entries(low), ...entries]);
}

/** The source of the value at a path: the layer with the highest precedence that contains it; undefined: the default applies. */
export function sourceOf(layers: readonly SettingsLayer[], path: readonly PropertyKey[]): string | undefined {
  return layers.findLast(({ table }) => depthOf(table, path) === path.length)?.source;
}

/** The source of a problem at a path: among the layers that contain the longest part of the path, the one with the highest precedence. */
export function nearestSource(layers: readonly SettingsLayer[], path: readonly PropertyKey[]): string | undefined {
  const depths = layers.map(({ table }) => depthOf(table, path));
  const deepest = Math.max(...depths);
  return layers[depths.lastIndexOf(deepest)]?.source;
}

/** The length of the path's part that exists in the table. A list counts completely, because lists are replaced, not merged. */
function depthOf(table: Table, path: readonly PropertyKey[]): number {
  let node: unknown = table;
  for (const [depth, key] of path.entries()) {
    if (Array.isArray(node)) return path.length;
    if (!isTable(node) || !Object.hasOwn(node, key)) return depth;
    node = node[String(key)];
  }
  return path.length;
}
