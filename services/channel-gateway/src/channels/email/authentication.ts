// Who sent a mail, as far as the receiving mail server has authenticated it (RFC 8601). A From alone proves nothing. Pure.
import { domainToASCII } from "node:url";

interface MethodResult {
  method: string;
  result: string;
  /** Property values by name, such as `header.from`. */
  properties: ReadonlyMap<string, string>;
}

interface AuthenticationResults {
  authservId: string;
  results: MethodResult[];
}

/** The address in lower case with an ASCII domain, so that equal addresses are equal texts; null: not an address. */
export function normalAddress(address: string): string | null {
  const at = address.lastIndexOf("@");
  const [local, domain] = [address.slice(0, at).trim().toLowerCase(), domainToASCII(address.slice(at + 1).trim())];
  if (at < 1 || local === "" || domain === "" || address.length > 320 || /[\s\p{C}<>,;:"()\\]/u.test(local))
    return null;
  return `${local}@${domain.toLowerCase()}`;
}

/**
 * Whether the server `authservId` states that the domain of the From has authenticated the mail: a DMARC pass, or a DKIM pass of the very
 * domain. Headers of other servers do not count. If the server's own statements contradict each other, one of them is forged.
 */
export function isAuthenticated(headers: readonly string[], authservId: string, fromDomain: string): boolean {
  const trusted = headers
    .map(parseAuthenticationResults)
    .filter((each) => each?.authservId.toLowerCase() === authservId.toLowerCase())
    .flatMap((each) => each?.results ?? []);
  const sameDomain = (value: string | undefined): boolean =>
    value !== undefined && value !== "" && domainToASCII(value).toLowerCase() === fromDomain;
  const dmarc = trusted.filter(({ method }) => method === "dmarc");
  if (dmarc.length > 0) {
    return dmarc.every(({ result, properties }) => result === "pass" && sameDomain(properties.get("header.from")));
  }
  const dkim = trusted.filter(({ method }) => method === "dkim");
  return dkim.some(({ result, properties }) => result === "pass" && sameDomain(dkimDomain(properties)));
}

/** `header.d`, or the domain of `header.i` of servers that report only that. */
function dkimDomain(properties: ReadonlyMap<string, string>): string | undefined {
  return properties.get("header.d") ?? /@([^@]+)$/.exec(properties.get("header.i") ?? "")?.[1];
}

/** Parses the value of a header; null when it is malformed. */
function parseAuthenticationResults(value: string): AuthenticationResults | null {
  const parts = splitParts(value);
  const [authservId = ""] = parts?.[0] ?? [];
  if (parts === null || authservId === "") return null;
  const results = parts.slice(1).flatMap((words) => {
    const [first = "", ...rest] = words;
    const [, method, result] = /^([a-z0-9-]+)(?:\/\d+)?=([a-z]+)$/i.exec(first) ?? [];
    if (method === undefined || result === undefined) return [];
    const properties = new Map<string, string>();
    for (const word of rest) {
      const at = word.indexOf("=");
      const name = word.slice(0, at).toLowerCase();
      // A repeated property would leave open which one the server meant.
      if (at > 0) properties.set(name, properties.has(name) ? "" : word.slice(at + 1));
    }
    return [{ method: method.toLowerCase(), result: result.toLowerCase(), properties }];
  });
  return { authservId, results };
}

/** The words between semicolons, without comments; a quoted text is part of its word. Null for unbalanced quotes or comments. */
function splitParts(value: string): string[][] | null {
  const parts: string[][] = [[]];
  let word = "";
  let depth = 0;
  let quoted = false;
  const endWord = (): void => {
    if (word !== "") parts.at(-1)?.push(word);
    word = "";
  };
  for (let at = 0; at < value.length; at += 1) {
    const char = value[at] ?? "";
    if (char === "\\" && (quoted || depth > 0)) {
      at += 1;
      if (quoted && depth === 0) word += value[at] ?? "";
    } else if (depth > 0) {
      if (char === "(") depth += 1;
      if (char === ")") depth -= 1;
    } else if (char === '"') quoted = !quoted;
    else if (quoted) word += char;
    else if (char === "(") depth = 1;
    else if (char === ";") {
      endWord();
      parts.push([]);
    } else if (/\s/.test(char)) {
      // White space around an equals sign belongs to the word.
      const next = /^\s*(\S?)/.exec(value.slice(at, at + 200))?.[1];
      if (next !== "=" && !word.endsWith("=")) endWord();
    } else word += char;
  }
  endWord();
  return quoted || depth > 0 ? null : parts;
}
