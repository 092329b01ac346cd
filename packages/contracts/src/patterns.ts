// The patterns of rules: `*` for any text, `?` for one character, `\` for the next one as it is; in paths `*` stays within one
// name and `**` stands for any names. Pure, and never slower than pattern length times text length, regardless of the pattern.

/** `any`: items as many as it takes; else one item that fits. */
type Token = "any" | ((item: string) => boolean);

/** Matches a whole text. */
export type TextMatcher = (text: string) => boolean;

export function compileText(pattern: string): TextMatcher {
  const tokens = tokenise(pattern);
  return (text) => matchAll(tokens, Array.from(text));
}

/** `git *` is also `git` alone: what follows the program may be nothing. */
export function compileCommand(pattern: string): TextMatcher {
  const whole = compileText(pattern);
  if (!pattern.endsWith(" *")) return whole;
  const bare = compileText(pattern.slice(0, -2));
  return (text) => whole(text) || bare(text);
}

/** Matches a text that has what the pattern says somewhere, from the beginning of a word on. */
export function compileAnywhere(pattern: string): TextMatcher {
  const tokens: Token[] = ["any", isBoundary, ...tokenise(pattern.replace(/ \*$/, "")), "any"];
  return (text) => matchAll(tokens, Array.from(` ${text}`));
}

/** Held against the names of a path, from the workspace down. */
export function compilePath(pattern: string): (names: readonly string[]) => boolean {
  const segments = pattern.split("/").filter((each) => each !== "" && each !== ".");
  const tokens = segments.map((segment) => (segment === "**" ? "any" : compileText(segment)));
  return (names) => matchAll(tokens, names);
}

/** Text with the characters that mean something in a pattern taken as they are. */
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

/** Both sides walked once; at a mismatch the last `any` takes one item more. */
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
