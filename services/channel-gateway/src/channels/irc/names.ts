// Compares IRC names by the server's case mapping. Pure.

export type CaseMapping = "ascii" | "rfc1459" | "rfc1459-strict";

/** The comparable form of a name. In RFC 1459 `{|}~` are the lower case of `[\]^`. */
export function fold(name: string, mapping: CaseMapping): string {
  const small = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  if (mapping === "ascii") return small;
  const braces = small.replaceAll("[", "{").replaceAll("]", "}").replaceAll("\\", "|");
  return mapping === "rfc1459" ? braces.replaceAll("^", "~") : braces;
}

export function isChannel(target: string): boolean {
  return /^[#&+!]/.test(target);
}
