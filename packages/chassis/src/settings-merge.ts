// Layers of settings put together: tables deep, lists and values replaced; and which layer a value came from. Pure.

export type Table = Readonly<Record<string, unknown>>;

export interface SettingsLayer {
  /** As people know it: a file's name, `preset goat`, a variable, a flag. */
  source: string;
  table: Table;
}

export function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** `layers`: the strongest last. */
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

/** The source of the value at a path: the strongest layer that has it whole; undefined where none has, so that a default holds. */
export function sourceOf(layers: readonly SettingsLayer[], path: readonly PropertyKey[]): string | undefined {
  return layers.findLast(({ table }) => depthOf(table, path) === path.length)?.source;
}

/** The source that is to blame for what is wrong at a path: of the layers that reach furthest towards it, the strongest. */
export function nearestSource(layers: readonly SettingsLayer[], path: readonly PropertyKey[]): string | undefined {
  const depths = layers.map(({ table }) => depthOf(table, path));
  const deepest = Math.max(...depths);
  return layers[depths.lastIndexOf(deepest)]?.source;
}

/** How many steps of the path lead through the table. A list counts as reached whole: it is replaced, never merged. */
function depthOf(table: Table, path: readonly PropertyKey[]): number {
  let node: unknown = table;
  for (const [depth, key] of path.entries()) {
    if (Array.isArray(node)) return path.length;
    if (!isTable(node) || !Object.hasOwn(node, key)) return depth;
    node = node[String(key)];
  }
  return path.length;
}
