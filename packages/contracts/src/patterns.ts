// The patterns of rules: `*` matches any text, `?` one character, `\` escapes the next character. In paths, `*` stays within one name and
// `**` matches any names. Pure. The worst case is pattern length times text length.

/** `any` matches any number of items; a function matches one item. */
type Token = "any" | ((item: string) => boolean);

/** Matches a whole text. */
export type TextMatcher = (text: string) => boolean;

export function compileText(pattern: string): TextMatcher {
  const tokens = tokenise(pattern);
  return (text) => matchAll(tokens, Array.from(text));
}

/** A trailing ` *` is optional: `git *` also matches `git`. */
export function compileCommand(pattern: string): TextMatcher {
  const whole = compileText(pattern);
  if (!pattern.endsWith(" *")) return whole;
  const bare = compileText(pattern.slice(0, -2));
  return (text) => whole(text) || bare(text);
}

/** Matches a text that contains the pattern, starting at a word boundary. */
export function compileAnywhere(pattern: string): TextMatcher {
  const tokens: Token[] = ["any", isBoundary, ...tokenise(pattern.replace(/ \*$/, "")), "any"];
  return (text) => matchAll(tokens, Array.from(` ${text}`));
}

/** Matches the names of a path, relative to the workspace. */
export function compilePathPattern(pattern: string): (names: readonly string[]) => boolean {
  const segments = pattern.split("/").filter((each) => each !== "" && each !== ".");
  const tokens = segments.map((segment) => (segment === "**" ? "any" : compileText(segment)));
  return (names) => matchAll(tokens, names);
}

/** Escapes the characters that have a meaning in patterns. */
export function escapePattern(text: string): string {
  return text.replaceAll(/[*?\\]/g, String.raw`\$&`);
}

function tokenise(pattern: string): Token[] {
  const tokens: Token[] = [];
  const characters = Array.from(pattern);
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index];
    const next = characters[index + 1];
    if (character === "*") {
      tokens.push("any");
    } else if (character === "?") {
      tokens.push(() => true);
    } else if (character === "\\" && next !== undefined) {
      tokens.push((item) => item === next);
      index += 1;
    } else {
      tokens.push((item) => item === character);
    }
  }
  return tokens;
}

function isBoundary(character: string): boolean {
  return !/[\p{L}\p{N}_.-]/u.test(character);
}

/** Greedy matching without recursion; after a mismatch the last `any` takes one more item. */
function matchAll(tokens: readonly Token[], items: readonly string[]): boolean {
  let t = 0;
  let star = -1;
  let resume = 0;
  for (let i = 0; i < items.length;) {
    const token = tokens[t];
    if (token === "any") {
      star = t;
      resume = i;
      t += 1;
    } else if (token?.(items[i] ?? "") === true) {
      t += 1;
      i += 1;
    } else if (star >= 0) {
      resume += 1;
      i = resume;
      t = star + 1;
    } else {
      return false;
    }
  }
  while (tokens[t] === "any") t += 1;
  return t === tokens.length;
}
