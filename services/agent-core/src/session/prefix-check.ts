// Compares each prompt with the previous one: between two compactions a prompt may only grow at its end. Any other
// change invalidates the provider's cache and the signatures of reasoning. A digest identifies a whole request.
import { hash } from "node:crypto";
import type { Part, store } from "@parley/contracts";
import type { ModelRequest, PromptMessage } from "../model/provider.ts";

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

type RequestParameters = store.RequestRecord["parameters"];

/** The fields of a request other than system prompt, tools and messages. */
export function parametersOf(request: ModelRequest): RequestParameters {
  const { maxOutputTokens, effort, thinking, cacheTtl, stopSequences = [] } = request;
  return {
    maxOutputTokens,
    ...(effort === undefined ? {} : { effort }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(cacheTtl === undefined ? {} : { cacheTtl }),
    ...(stopSequences.length === 0 ? {} : { stopSequences: [...stopSequences] }),
  };
}

/** Identifies a request by the fingerprints of its prefix and messages, and by its parameters. */
export function requestDigest(prints: readonly string[], parameters: RequestParameters): string {
  const { maxOutputTokens, effort, thinking, cacheTtl, stopSequences } = parameters;
  const others = JSON.stringify([maxOutputTokens, effort, thinking, cacheTtl, stopSequences]);
  return hash("sha256", `${prints.join("\n")}\n${others}`);
}

function fingerprint(part: Part): string {
  let print = known.get(part);
  if (print === undefined) {
    print = hash("sha1", JSON.stringify(part, sortedKeys), "base64");
    known.set(part, print);
  }
  return print;
}

/** Fields in the order of their names: a part has the same fingerprint after it was stored and read. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
