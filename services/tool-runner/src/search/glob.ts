// Glob patterns: `*`, `?`, `[a-z]`, `{a,b}` and `**`. Pure; the time is at most pattern length times path length.

const maxAlternatives = 64;

export type PathMatcher = (path: string) => boolean;

/** A pattern that cannot be used; the message is for the model. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** A pattern without `/` matches the name alone, one with `/` the whole path. */
export function compileGlob(pattern: string): PathMatcher {
  const alternatives = expandBraces(pattern.replace(/^\.\//, "")).map((each) => each.split("/"));
  return (path) => {
    const parts = path.split("/");
    const name = parts.slice(-1);
    return alternatives.some((each) => matchParts(each, each.length === 1 && each[0] !== "**" ? name : parts));
  };
}

/** `a{b,c}d` → `abd`, `acd`. Throws PatternError beyond 64 alternatives. */
export function expandBraces(pattern: string): string[] {
  const done: string[] = [];
  const waiting = [pattern];
  while (waiting.length > 0) {
    if (waiting.length + done.length > maxAlternatives) {
      throw new PatternError(`The pattern has more than ${maxAlternatives} alternatives in braces.`);
    }
    const next = waiting.shift() ?? "";
    const braces = innermostBraces(next);
    if (braces === undefined) done.push(next);
    else for (const choice of braces.choices) waiting.push(`${braces.before}${choice}${braces.after}`);
  }
  return done;
}

function innermostBraces(pattern: string): { before: string; choices: string[]; after: string } | undefined {
  let from = pattern.length;
  for (;;) {
    const start = pattern.lastIndexOf("{", from);
    if (start < 0) return undefined;
    const end = pattern.indexOf("}", start);
    const inside = end < 0 ? "" : pattern.slice(start + 1, end);
    if (inside.includes(",")) {
      return { before: pattern.slice(0, start), choices: inside.split(","), after: pattern.slice(end + 1) };
    }
    if (start === 0) return undefined;
    from = start - 1;
  }
}

/** Walks both sides once; on a mismatch the last `**` consumes one more part. */
function matchParts(pattern: readonly string[], parts: readonly string[]): boolean {
  let p = 0;
  let s = 0;
  let star = -1;
  let resume = 0;
  while (s < parts.length) {
    const each = pattern[p];
    if (each === "**") {
      star = p;
      resume = s;
      p += 1;
    } else if (each !== undefined && matchName(each, parts[s] ?? "")) {
      p += 1;
      s += 1;
    } else if (star >= 0) {
      resume += 1;
      s = resume;
      p = star + 1;
    } else {
      return false;
    }
  }
  while (pattern[p] === "**") p += 1;
  return p === pattern.length;
}

function matchName(pattern: string, name: string): boolean {
  let p = 0;
  let s = 0;
  let star = -1;
  let resume = 0;
  while (s < name.length) {
    const each = pattern[p];
    const set = each === "[" ? readSet(pattern, p) : undefined;
    if (each === "*") {
      star = p;
      resume = s;
      p += 1;
    } else if (set !== undefined && set.has(name[s] ?? "")) {
      p = set.end;
      s += 1;
    } else if (set === undefined && each !== undefined && (each === "?" || each === name[s])) {
      p += 1;
      s += 1;
    } else if (star >= 0) {
      resume += 1;
      s = resume;
      p = star + 1;
    } else {
      return false;
    }
  }
  while (pattern[p] === "*") p += 1;
  return p === pattern.length;
}

/** The set `[…]` at a position; undefined when it is not closed, so that `[` is literal. */
function readSet(pattern: string, start: number): { end: number; has(character: string): boolean } | undefined {
  const negated = pattern[start + 1] === "!" || pattern[start + 1] === "^";
  const first = start + (negated ? 2 : 1);
  const close = pattern.indexOf("]", first + 1);
  if (close < 0) return undefined;
  const body = pattern.slice(first, close);
  const has = (character: string) => {
    for (let index = 0; index < body.length; index++) {
      const from = body[index] ?? "";
      const to = body[index + 1] === "-" && index + 2 < body.length ? (body[index + 2] ?? from) : from;
      if (character >= from && character <= to) return true;
      if (to !== from) index += 2;
    }
    return false;
  };
  return { end: close + 1, has: (character) => has(character) !== negated };
}
