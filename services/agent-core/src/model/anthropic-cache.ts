// Where Anthropic keeps a prompt: the breakpoints of its cache, at most four. One behind the tools, one behind the system prompt,
// one at the end of the newest user message, which writes; and one at the end of the user message before it, which is where the
// call before this one wrote. That last one is needed: the provider looks back only 20 blocks from a breakpoint, and eleven
// parallel calls with their results are 22. Breakpoints move; the content they stand on never changes. Pure.
import type Anthropic from "@anthropic-ai/sdk";

type Message = Anthropic.Beta.BetaMessageParam;
type CacheControl = Anthropic.Beta.BetaCacheControlEphemeral;

export function cacheControl(ttl: "5m" | "1h" | undefined): CacheControl {
  // Five minutes is what the provider does when it is told nothing.
  return ttl === "1h" ? { type: "ephemeral", ttl } : { type: "ephemeral" };
}

/** The tools with the last one marked; none stay none. */
export function markTools(tools: Anthropic.Beta.BetaTool[], cache: CacheControl): Anthropic.Beta.BetaTool[] {
  return tools.map((tool, index) => (index === tools.length - 1 ? { ...tool, cache_control: cache } : tool));
}

/** The messages with the last two of the user marked. */
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
