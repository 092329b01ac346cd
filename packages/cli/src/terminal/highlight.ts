// Colours code by its language for a terminal. The HTML of the highlighter is converted to terminal styles.

import { createRequire } from "node:module";

import type { Format, Paint } from "../io/io.ts";

interface Highlighter {
  registerLanguage(name: string, language: unknown): void;
  getLanguage(name: string): object | undefined;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
}

// Its type declarations would add the types of browsers to the whole repository.
const require = createRequire(import.meta.url);
const core = require("highlight.js/lib/core") as Highlighter;
const languages = [
  "bash",
  "c",
  "cpp",
  "css",
  "diff",
  "go",
  "ini",
  "java",
  "javascript",
  "json",
  "python",
  "ruby",
  "rust",
  "sql",
  "typescript",
  "xml",
  "yaml",
];
for (const name of languages) core.registerLanguage(name, require(`highlight.js/lib/languages/${name}`));

/** Styles by the first word of the highlighter's class; other classes have the colour of the text around them. */
const styles: Readonly<Record<string, Format>> = {
  keyword: "magenta",
  built_in: "cyan",
  type: "cyan",
  literal: "yellow",
  number: "yellow",
  string: "green",
  regexp: "green",
  comment: "gray",
  doctag: "gray",
  meta: "gray",
  title: "blue",
  attr: "blue",
  attribute: "blue",
  name: "blue",
  tag: "blue",
  selector: "blue",
  section: "blue",
  variable: "cyan",
  symbol: "yellow",
  addition: "green",
  deletion: "red",
};

/** Code longer than this is not coloured: it is drawn again with each delta. */
const maxChars = 20_000;

const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&amp;": "&",
  "&quot;": '"',
  "&#x27;": "'",
};

/** The lines of the code with colours; without them for an unknown language. */
export function highlight(code: string, language: string | undefined, paint: Paint): string[] {
  if (language === undefined || core.getLanguage(language) === undefined || code.length > maxChars)
    return code.split("\n");
  return toTerminal(core.highlight(code, { language, ignoreIllegals: true }).value, paint).split("\n");
}

/** A style must not cross a line end: each line is painted by itself. */
function toTerminal(html: string, paint: Paint): string {
  const open: (Format | null)[] = [];
  let out = "";
  for (const [token] of html.matchAll(/<span class="[^"]*">|<\/span>|[^<]+/g)) {
    if (token === "</span>") open.pop();
    else if (token.startsWith("<span"))
      open.push(styles[/hljs-([a-z_]+)/.exec(token)?.[1] ?? ""] ?? open.at(-1) ?? null);
    else {
      const text = token.replaceAll(/&(?:lt|gt|amp|quot|#x27);/g, (entity) => entities[entity] ?? entity);
      const style = open.at(-1) ?? null;
      out +=
        style === null
          ? text
          : text
              .split("\n")
              .map((line) => paint(style, line))
              .join("\n");
    }
  }
  return out;
}
