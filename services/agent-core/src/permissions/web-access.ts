// Requests of the web tools: which host a call reaches, and which addresses an owner gave literally. A request carries data in its
// address, so in a tainted turn each host needs approval. Pure.
import { isUntrustedInput, textOf, type Message } from "@parley/contracts";
import type { ReadCall } from "./call.ts";
import type { PermissionTool } from "./tool-facts.ts";

/** The tools that send a request for the model, with an address or a query that the model writes. */
const webTools: ReadonlySet<string> = new Set(["web_fetch", "web_search"]);

export function reachesWeb(tool: Pick<PermissionTool, "name">): boolean {
  return webTools.has(tool.name);
}

/** Whom a call of a web tool sends to, for people, and the rules that cover it; null where the address is none. */
export function webTargetOf({ tool, argument }: ReadCall): { name: string; rules: string[] } | null {
  if (tool.name === "web_search") return { name: "the search provider", rules: ["web_search"] };
  if (!reachesWeb(tool) || argument.kind !== "url" || argument.url === null) return null;
  const { url } = argument;
  if (!/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return null;
  return { name: url.origin, rules: [`${tool.name}(${url.origin}/*)`] };
}

/**
 * The addresses that stand literally in messages of owners. Messages that are forwarded or otherwise untrusted, and those that
 * another agent wrote, give none.
 */
export function addressesGivenIn(messages: readonly Message[]): Set<string> {
  const given = new Set<string>();
  for (const { from, parts } of messages) {
    if (from?.role !== "owner" || from.origin !== "user" || isUntrustedInput(from, parts)) continue;
    for (const [written] of textOf(parts).matchAll(/https?:\/\/[^\s<>"'`]+/gi)) {
      // The end of a sentence or a bracket around the address is not part of it; people write both forms.
      for (const text of [written, written.replace(/[.,;:!?)\]}*_]+$/, "")]) {
        const address = addressOf(text);
        if (address !== null) given.add(address);
      }
    }
  }
  return given;
}

/** True when an owner gave exactly this address: scheme, host, port, path and query. */
export function isGiven({ tool, argument }: ReadCall, given: ReadonlySet<string>): boolean {
  if (tool.name !== "web_fetch" || argument.kind !== "url") return false;
  const address = addressOf(argument.written);
  return address !== null && given.has(address);
}

/** Without the fragment, which is never sent; null for what is no web address. */
function addressOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return null;
  url.hash = "";
  return url.href;
}
