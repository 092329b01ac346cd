// Words of a command line as paths: what quoting and braces make of them, and where they are seen from. Pure.
import type { Word } from "unbash";
import { expandBraces, PatternError } from "../search/glob.ts";
import { sandboxRoot } from "../workspace/paths.ts";

/** A path as the command line names it, made whole with the directory it is seen from. */
export interface NamedPath {
  path: string;
  /** It has `*`, `?` or `[…]` in it, which stand for what is there. */
  pattern: boolean;
}

export interface Scope {
  /** Where the shell stands; undefined once that is not known. */
  directory: string | undefined;
  depth: number;
}

interface Text {
  text: string;
  pattern: boolean;
  braces: boolean;
}

/** The text of a word; undefined where only the shell knows it. In a pattern, what was quoted stands in brackets. */
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
    return alternatives(text).flatMap((each) => whole({ ...text, text: each }, scope) ?? []);
  });
}

function alternatives({ text, braces }: Text): string[] {
  if (!braces) return [text];
  try {
    return expandBraces(text);
  } catch (error) {
    if (error instanceof PatternError) return [];
    throw error;
  }
}

/** The path from the workspace folder, or absolute; undefined where the directory is not known. */
export function whole({ text, pattern }: Text, { directory }: Scope): NamedPath | undefined {
  if (text === "") return undefined;
  // A command's home is the workspace folder.
  if (text === "~" || text.startsWith("~/")) return { path: `${sandboxRoot}${text.slice(1)}`, pattern };
  if (text.startsWith("/")) return { path: text, pattern };
  if (directory === undefined) return undefined;
  return { path: directory === "" ? text : `${directory}/${text}`, pattern };
}
