// Turns words of a command line into paths, resolving quotes, braces and the working directory. Pure.
import { braceExpand } from "minimatch";
import type { Word } from "unbash";
import { sandboxRoot } from "../workspace/paths.ts";

const braceExpandMax = 64;

/** A path from the command line, resolved against its directory. */
export interface NamedPath {
  path: string;
  /** Whether it contains the wildcards `*`, `?` or `[…]`. */
  pattern: boolean;
}

export interface Scope {
  /** The shell's working directory; undefined once it is unknown. */
  directory: string | undefined;
  depth: number;
}

interface Text {
  text: string;
  pattern: boolean;
  braces: boolean;
}

/** The text of a word; undefined when only the shell knows it. In a pattern, quoted wildcards are put in brackets. */
export function literal(word: Word): Text | undefined {
  if (word.parts === undefined) return { text: word.value, pattern: false, braces: false };
  const pattern = word.parts.some((part) => part.type === "Glob");
  const braces = word.parts.some((part) => part.type === "BraceExpansion");
  let text = "";
  for (const part of word.parts) {
    if (part.type === "Glob" || part.type === "BraceExpansion") text += part.text;
    else if (part.type === "Literal" || part.type === "SingleQuoted" || part.type === "AnsiCQuoted") {
      text += pattern ? quoted(part.value) : part.value;
    } else if (part.type === "DoubleQuoted") {
      for (const child of part.parts) {
        if (child.type !== "Literal") return undefined;
        text += pattern ? quoted(child.value) : child.value;
      }
    } else return undefined;
  }
  return { text, pattern, braces };
}

function quoted(text: string): string {
  return text.replaceAll(/[*?[]/g, "[$&]");
}

export function named(words: readonly Word[], scope: Scope): NamedPath[] {
  return words.flatMap((word) => {
    const text = literal(word);
    if (text === undefined) return [];
    return (text.braces ? braceExpand(text.text, { braceExpandMax }) : [text.text]).flatMap(
      (each) => whole({ ...text, text: each }, scope) ?? [],
    );
  });
}

/** The path relative to the workspace folder, or absolute; undefined when the directory is unknown. */
export function whole({ text, pattern }: Text, { directory }: Scope): NamedPath | undefined {
  if (text === "") return undefined;
  // A command's home is the workspace folder.
  if (text === "~" || text.startsWith("~/")) return { path: `${sandboxRoot}${text.slice(1)}`, pattern };
  if (text.startsWith("/")) return { path: text, pattern };
  if (directory === undefined) return undefined;
  return { path: directory === "" ? text : `${directory}/${text}`, pattern };
}
