// Completion in the input of the terminal chat: commands and their arguments, sessions, and files after `@`.

import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import type { AutocompleteItem, AutocompleteProvider, AutocompleteSuggestions } from "@earendil-works/pi-tui";

export interface CommandHelp {
  /** With the slash. */
  readonly name: string;
  /** The name and its arguments: `/session [list | resume <id>]`. */
  readonly usage: string;
  readonly summary: string;
}

export interface CompletionSources {
  readonly commands: readonly CommandHelp[];
  /** The folder that file names are relative to. */
  readonly folder: string;
  /** Names of sessions, for arguments that take one. */
  sessions(): Promise<readonly AutocompleteItem[]>;
}

const maxItems = 50;
/** Forms whose next argument is a session. */
const takesSession = /^\/(?:session\s+resume|resume)\s+(.*)$/i;

export class Completion implements AutocompleteProvider {
  readonly triggerCharacters = ["@"];
  readonly #sources: CompletionSources;

  constructor(sources: CompletionSources) {
    this.#sources = sources;
  }

  async getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorCol: number,
  ): Promise<AutocompleteSuggestions | null> {
    const before = (lines[cursorLine] ?? "").slice(0, cursorCol);
    const file = /(?:^|\s)(@"?[^"\s]*)$/.exec(before)?.[1];
    if (file !== undefined) return suggestions(await this.#files(file), file);
    if (cursorLine > 0 || !before.startsWith("/")) return null;
    if (!/\s/.test(before)) return suggestions(commandItems(this.#sources.commands, before), before);
    const session = takesSession.exec(before)?.[1];
    if (session !== undefined) {
      const items = await this.#sources.sessions().catch(() => []);
      return suggestions(
        items.filter(({ label }) => startsWith(label, session)),
        session,
      );
    }
    const word = /\S*$/.exec(before)?.[0] ?? "";
    return suggestions(argumentItems(this.#sources.commands, before.slice(0, before.length - word.length), word), word);
  }

  applyCompletion(lines: string[], cursorLine: number, cursorCol: number, item: AutocompleteItem, prefix: string) {
    const line = lines[cursorLine] ?? "";
    const before = line.slice(0, cursorCol - prefix.length);
    const after = line.slice(cursorCol);
    // A folder is completed further.
    const space = item.value.endsWith("/") || after.startsWith(" ") ? "" : " ";
    const cursor = before.length + item.value.length + space.length;
    return { lines: lines.with(cursorLine, `${before}${item.value}${space}${after}`), cursorLine, cursorCol: cursor };
  }

  async #files(token: string): Promise<AutocompleteItem[]> {
    const typed = token.replace(/^@"?/, "");
    const folder = typed.endsWith("/") ? typed : dirname(typed) === "." ? "" : `${dirname(typed)}/`;
    const name = typed.slice(folder.length);
    const home = process.env["HOME"] ?? "~";
    const place = resolve(this.#sources.folder, folder.replace(/^~(?=\/)/, home));
    const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
    return entries
      .filter((entry) => startsWith(entry.name, name) && (name.startsWith(".") || !entry.name.startsWith(".")))
      .map((entry) => ({
        path: `${folder}${entry.name}${entry.isDirectory() ? "/" : ""}`,
        place: join(folder, entry.name),
      }))
      .sort((a, b) => (a.path < b.path ? -1 : 1))
      .slice(0, maxItems)
      .map(({ path }) => ({ value: /\s/.test(path) ? `@"${path}"` : `@${path}`, label: path }));
  }
}

function startsWith(text: string, prefix: string): boolean {
  return text.toLowerCase().startsWith(prefix.toLowerCase());
}

/** Null when nothing matches, or only what is typed already: Enter then sends the message. */
function suggestions(items: readonly AutocompleteItem[], prefix: string): AutocompleteSuggestions | null {
  const [first] = items;
  if (first === undefined || (items.length === 1 && first.value === prefix)) return null;
  return { items: [...items], prefix };
}

/** Commands whose name begins with the text, with their summaries. Pure. */
function commandItems(commands: readonly CommandHelp[], typed: string): AutocompleteItem[] {
  return commands
    .filter(({ name }) => startsWith(name, typed))
    .map(({ name, summary }) => ({ value: name, label: name, description: summary }));
}

/** The words that the usage of a command lists for its first argument. Pure. */
function argumentItems(commands: readonly CommandHelp[], before: string, word: string): AutocompleteItem[] {
  const [name = "", ...others] = before.trim().split(/\s+/);
  const command = commands.find((each) => each.name === name.toLowerCase());
  if (command === undefined || others.length > 0) return [];
  const words = command.usage
    .slice(name.length)
    .replaceAll(/[[\]]/g, "")
    .split("|")
    .flatMap((form) => /^\s*([a-z_][\w-]*)/i.exec(form)?.[1] ?? []);
  return [...new Set(words)].filter((each) => startsWith(each, word)).map((each) => ({ value: each, label: each }));
}
