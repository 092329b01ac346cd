// Web requests: the host that a call reaches, and the addresses that an owner gave literally. An address can carry data out, so each
// host requires approval in a tainted turn. Pure.
import { isUntrustedInput, textOf, type Message } from "@parley/contracts";
import type { ParsedCall } from "./parsed-call.ts";
import type { PermissionTool } from "./tool-traits.ts";

/** The tools that send web requests with an address or query written by the model. */
const webTools: ReadonlySet<string> = new Set(["web_fetch", "web_search"]);

export function reachesWeb(tool: Pick<PermissionTool, "name">): boolean {
  return webTools.has(tool.name);
}

/** The recipient of a web request, for display, and the rules that cover it; null if the address is invalid. */
export function webTargetOf({ tool, argument }: ParsedCall): { name: string; rules: string[] } | null {
  if (tool.name === "web_search") return { name: "the search provider", rules: ["web_search"] };
  if (!reachesWeb(tool) || argument.kind !== "url" || argument.url === null) return null;
  const { url } = argument;
  if (!/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return null;
  return { name: url.origin, rules: [`${tool.name}(${url.origin}/*)`] };
}

/** The addresses that occur literally in owners' messages, except forwarded, otherwise untrusted, or agent-written ones. */
export function addressesGivenIn(messages: readonly Message[]): Set<string> {
  const given = new Set<string>();
  for (const { from, parts } of messages) {
    if (from?.role !== "owner" || from.origin !== "user" || isUntrustedInput(from, parts)) continue;
    for (const [written] of textOf(parts).matchAll(/https?:\/\/[^\s<>"'`]+/gi)) {
      // Punctuation after an address may or may not belong to it, so both forms count.
      for (const text of [written, written.replace(/[.,;:!?)\]}*_]+$/, "")]) {
        const address = addressOf(text);
        if (address !== null) given.add(address);
      }
    }
  }
  return given;
}

/** True when an owner gave exactly this address: scheme, host, port, path and query. */
export function isGiven({ tool, argument }: ParsedCall, given: ReadonlySet<string>): boolean {
  if (tool.name !== "web_fetch" || argument.kind !== "url") return false;
  const address = addressOf(argument.written);
  return address !== null && given.has(address);
}

/** The address without its fragment, which is never sent; null if it is not a web address. */
function addressOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return null;
  url.hash = "";
  return url.href;
}
