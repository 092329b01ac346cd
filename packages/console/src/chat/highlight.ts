// Highlighted code. The highlighter is loaded with the first code block.
import type { HLJSApi, LanguageFn } from "highlight.js";

/** Longer code is shown plain: highlighting it would block the page. */
const maxCharacters = 50_000;

const aliases: Readonly<Record<string, string>> = {
  sh: "bash",
  shell: "bash",
  console: "bash",
  zsh: "bash",
  html: "xml",
};

let loading: Promise<HLJSApi> | undefined;

async function load(): Promise<HLJSApi> {
  const { core, languages } = await import("./highlighter.ts");
  for (const [name, language] of Object.entries<LanguageFn>(languages)) core.registerLanguage(name, language);
  return core;
}

/** Escaped HTML with classes; null: the language is unknown or the code is too long. */
export async function highlight(code: string, language: string): Promise<string | null> {
  if (language === "" || code.length > maxCharacters) return null;
  loading ??= load();
  const core = await loading;
  const name = aliases[language] ?? language;
  if (core.getLanguage(name) === undefined) return null;
  return core.highlight(code, { language: name, ignoreIllegals: true }).value;
}
