// Link definitions that nothing refers to: Markdown shows nothing for them, and a line such as `[Note]: done` or a list of sources would be
// lost. Pure.
import type { Definition, Nodes, Root } from "mdast";

/** The source, in which each definition that its text does not use is text. */
export function withVisibleDefinitions(source: string, tree: Root): string {
  const definitions: Definition[] = [];
  const used = new Set<string>();
  collect(tree, definitions, used);
  // Of several definitions of a label, the first one counts.
  const isUsed = definitions.map(({ identifier }) => used.delete(identifier));
  return definitions.reduceRight((text, { position }, index) => {
    if (position === undefined || isUsed[index] === true) return text;
    const at = position.start.offset ?? 0;
    const end = position.end.offset ?? at;
    // A definition cannot follow text without an empty line.
    const isFollowed =
      isUsed[index + 1] === true && definitions[index + 1]?.position?.start.line === position.end.line + 1;
    return `${text.slice(0, at)}\\${text.slice(at, end)}${isFollowed ? "\n" : ""}${text.slice(end)}`;
  }, source);
}

function collect(node: Nodes, definitions: Definition[], used: Set<string>): void {
  if (node.type === "definition") definitions.push(node);
  if (node.type === "linkReference" || node.type === "imageReference") used.add(node.identifier);
  if ("children" in node) for (const child of node.children) collect(child, definitions, used);
}
