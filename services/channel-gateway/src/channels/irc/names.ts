// When two IRC names are the same name. Pure.

export type CaseMapping = "ascii" | "rfc1459" | "rfc1459-strict";

/** A name in its comparable form. RFC 1459 takes `{|}~` for the small letters of `[\]^`. */
export function fold(name: string, mapping: CaseMapping): string {
  const small = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  if (mapping === "ascii") return small;
  const braces = small.replaceAll("[", "{").replaceAll("]", "}").replaceAll("\\", "|");
  return mapping === "rfc1459" ? braces.replaceAll("^", "~") : braces;
}

export function isChannel(target: string): boolean {
  return /^[#&+!]/.test(target);
}
