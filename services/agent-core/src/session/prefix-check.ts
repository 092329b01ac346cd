// Compares each prompt with the previous one: between two compactions a prompt may only grow at its end. Any other
// change invalidates the provider's cache and the signatures of reasoning.
import { hash } from "node:crypto";
import type { Part } from "@parley/contracts";
import type { PromptMessage } from "../model/provider.ts";

const known = new WeakMap<Part, string>();

/**
 * One fingerprint per block, in order. The API merges adjacent messages of one role, so roles count and message borders
 * do not.
 */
export function fingerprints(prefixHash: string, messages: readonly PromptMessage[]): string[] {
  const prints = [prefixHash];
  for (const { role, parts } of messages) {
    for (const part of parts) prints.push(`${role} ${fingerprint(part)}`);
  }
  return prints;
}

/**
 * The index of the first block that differs from what was sent; undefined when the new prompt continues the old one.
 */
export function firstDifference(sent: readonly string[], next: readonly string[]): number | undefined {
  const index = sent.findIndex((print, at) => print !== next[at]);
  return index === -1 ? undefined : index;
}

function fingerprint(part: Part): string {
  let print = known.get(part);
  if (print === undefined) {
    print = hash("sha1", JSON.stringify(part), "base64");
    known.set(part, print);
  }
  return print;
}
