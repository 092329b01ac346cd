// Parses and formats one line of the IRC protocol. Pure. A formatted line is always exactly one line: parameters that would end it early
// are refused or cleaned here.

export interface IrcLine {
  tags: ReadonlyMap<string, string>;
  /** The sender: `nick!user@host` or a server's name. */
  source: string | null;
  /** In upper case; replies are three digits. */
  command: string;
  params: readonly string[];
}

/** A line to write. All parameters except the last are single words. */
export interface IrcCommand {
  tags?: Readonly<Record<string, string>>;
  command: string;
  params: readonly string[];
}

export class IrcSyntaxError extends Error {
  override readonly name = "IrcSyntaxError";
}

const escapes: Record<string, string> = { ";": "\\:", " ": "\\s", "\\": "\\\\", "\r": "\\r", "\n": "\\n" };
const unescapes: Record<string, string> = { ":": ";", s: " ", "\\": "\\", r: "\r", n: "\n" };

/** Parses a line without its line break; null when it is invalid. */
export function parseLine(text: string): IrcLine | null {
  const [, tagText, source, command = "", rest = ""] =
    /^(?:@([^ ]+) +)?(?: *:([^ ]+) +)? *([A-Za-z]+|\d{3})(?= |$)([^]*)$/.exec(text) ?? [];
  if (command === "") return null;
  return {
    tags: parseTags(tagText ?? ""),
    source: source ?? null,
    command: command.toUpperCase(),
    params: parseParams(rest),
  };
}

function parseTags(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (const part of text.split(";")) {
    const equals = part.indexOf("=");
    const key = equals === -1 ? part : part.slice(0, equals);
    if (key === "") continue;
    const value = equals === -1 ? "" : part.slice(equals + 1);
    tags.set(
      key,
      value.replace(/\\([^]?)/g, (_, escaped: string) => unescapes[escaped] ?? escaped),
    );
  }
  return tags;
}

function parseParams(text: string): string[] {
  const params: string[] = [];
  let rest = text.replace(/^ +/, "");
  while (rest !== "") {
    if (rest.startsWith(":")) {
      params.push(rest.slice(1));
      break;
    }
    const [word = ""] = /^[^ ]+/.exec(rest) ?? [];
    params.push(word);
    rest = rest.slice(word.length).replace(/^ +/, "");
  }
  return params;
}

/** Formats a line without its line break. Line breaks and NUL become spaces in the last parameter and are refused elsewhere. */
export function formatLine({ tags = {}, command, params }: IrcCommand): string {
  if (!/^[A-Z]+$/.test(command)) throw new IrcSyntaxError("not a command");
  const head = Object.entries(tags).map(([key, value]) => {
    if (!/^\+?[A-Za-z0-9./-]+$/.test(key)) throw new IrcSyntaxError("not a tag");
    const escaped = value.replaceAll("\0", "").replace(/[; \\\r\n]/g, (character) => escapes[character] ?? "");
    return escaped === "" ? key : `${key}=${escaped}`;
  });
  const middle = params.slice(0, -1);
  for (const word of middle) {
    if (!isWord(word)) throw new IrcSyntaxError("a parameter in the middle of a line must be one word");
  }
  const last = params.at(-1)?.replace(/[\r\n\0]/g, " ");
  const words = [command, ...middle, ...(last === undefined ? [] : [`:${last}`])].join(" ");
  return head.length === 0 ? words : `@${head.join(";")} ${words}`;
}

/** Whether a text is valid as a middle parameter. */
export function isWord(text: string): boolean {
  return /^[^:\s\0][^\s\0]*$/.test(text);
}

/** The nick in a source. */
export function nickOf(source: string | null): string {
  return source?.split(/[!@]/, 1)[0] ?? "";
}
