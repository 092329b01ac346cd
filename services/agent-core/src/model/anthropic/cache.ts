// The breakpoints of Anthropic's prompt cache, at most four; pure. They are after the tools, after the system prompt,
// and at the end of the two newest user messages. The newest one writes; the one before is where the previous call
// wrote. It is needed because the provider searches only 20 blocks back from a breakpoint, and eleven parallel calls
// with their results are 22. Breakpoints move, but the content before them never changes.
import type Anthropic from "@anthropic-ai/sdk";

type Message = Anthropic.Beta.BetaMessageParam;
type CacheControl = Anthropic.Beta.BetaCacheControlEphemeral;

export function cacheControl(ttl: "5m" | "1h" | undefined): CacheControl {
  // Five minutes is the provider's default.
  return ttl === "1h" ? { type: "ephemeral", ttl } : { type: "ephemeral" };
}

/** The tools with a breakpoint on the last one; an empty list stays empty. */
export function markTools(tools: Anthropic.Beta.BetaTool[], cache: CacheControl): Anthropic.Beta.BetaTool[] {
  return tools.map((tool, index) => (index === tools.length - 1 ? { ...tool, cache_control: cache } : tool));
}

/** The messages with breakpoints on the last two user messages. */
export function markMessages(messages: Message[], cache: CacheControl): Message[] {
  const marked = new Set(messages.filter((message) => message.role === "user").slice(-2));
  return messages.map((message) => {
    if (message.role !== "user" || !marked.has(message) || typeof message.content === "string") return message;
    const last = message.content.at(-1);
    if (last === undefined || !mayBeMarked(last)) return message;
    return { ...message, content: [...message.content.slice(0, -1), { ...last, cache_control: cache }] };
  });
}

type Markable = Extract<Anthropic.Beta.BetaContentBlockParam, { type: "text" | "tool_result" | "image" | "document" }>;

function mayBeMarked(block: Anthropic.Beta.BetaContentBlockParam): block is Markable {
  return ["text", "tool_result", "image", "document"].includes(block.type);
}
