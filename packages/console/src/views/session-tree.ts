// The order of sessions in a list with sub-agents: each below the session that started it. Pure.

interface Node {
  sessionId: string;
  parentId: string | null;
}

/** The deepest indentation, so that titles stay readable on a small screen. */
const maxDepth = 4;

/** The rows with their depth. A sub-agent whose parent is not in the list stays where it is, at depth 0. */
export function asTree<N extends Node>(rows: readonly N[]): { row: N; depth: number }[] {
  const listed = new Set(rows.map(({ sessionId }) => sessionId));
  const children = new Map<string, N[]>();
  for (const row of rows) {
    if (row.parentId !== null && listed.has(row.parentId)) {
      children.set(row.parentId, [...(children.get(row.parentId) ?? []), row]);
    }
  }
  const withChildren = (row: N, depth: number): { row: N; depth: number }[] => [
    { row, depth: Math.min(depth, maxDepth) },
    ...(children.get(row.sessionId) ?? []).flatMap((child) => withChildren(child, depth + 1)),
  ];
  return rows
    .filter(({ parentId }) => parentId === null || !listed.has(parentId))
    .flatMap((row) => withChildren(row, 0));
}
