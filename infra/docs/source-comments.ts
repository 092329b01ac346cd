// The documentation comments of fields in the contracts' sources: schemas do not contain them.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const sources = join(import.meta.dirname, "../../packages/contracts/src");

/** The comment before each field of a file, by the name of the field. A name with different comments in the file has none. */
export function fieldComments(pattern: string): ReadonlyMap<string, string> {
  const found = new Map<string, Set<string>>();
  for (const file of globSync(pattern, { cwd: sources }).toSorted()) {
    const text = readFileSync(join(sources, file), "utf8");
    for (const [, comment = "", name = ""] of text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(\w+)\??:/g)) {
      const plain = comment
        .replaceAll(/\s*\n\s*\*\s?/g, " ")
        .replaceAll(/\s+/g, " ")
        .trim();
      found.set(name, (found.get(name) ?? new Set()).add(plain));
    }
  }
  const single = [...found].flatMap(([name, texts]): [string, string][] => {
    const [text] = texts;
    return texts.size === 1 && text !== undefined ? [[name, text]] : [];
  });
  return new Map(single);
}
