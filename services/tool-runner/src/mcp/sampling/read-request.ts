// Parses a sampling request of an MCP server: texts and pictures, with a user message first and last. Pure.
import type { CreateMessageRequestParams } from "@modelcontextprotocol/client";
import { maxSampleCharacters, maxSampleMessages } from "@parley/contracts";

interface Picture {
  mimeType: string;
  /** Base64. */
  data: string;
}

export interface ReadMessage {
  role: "user" | "assistant";
  blocks: (string | Picture)[];
}

export interface ReadRequest {
  system: string | null;
  messages: ReadMessage[];
  maxTokens: number;
  stopSequences: string[];
}

const maxPictures = 8;

/** The request, or the reason for refusing it, for the server. */
export function readRequest(params: CreateMessageRequestParams): ReadRequest | { problem: string } {
  if (params.tools !== undefined || params.toolChoice !== undefined) return { problem: "tools are not supported" };
  if (params.maxTokens < 1) return { problem: "maxTokens must be at least 1" };
  const messages: ReadMessage[] = [];
  for (const { role, content } of params.messages) {
    const blocks: ReadMessage["blocks"] = [];
    for (const block of [content].flat()) {
      if (block.type === "text") blocks.push(block.text.toWellFormed());
      else if (block.type === "image" && role === "user") blocks.push({ mimeType: block.mimeType, data: block.data });
      else return { problem: `content of type ${block.type} is not supported from the ${role}` };
    }
    const said = blocks.filter((block) => typeof block !== "string" || block.trim() !== "");
    const last = messages.at(-1);
    if (said.length === 0) continue;
    if (last?.role === role) last.blocks.push(...said);
    else messages.push({ role, blocks: said });
  }
  if (messages.length > maxSampleMessages) return { problem: `there are more than ${maxSampleMessages} messages` };
  if (messages.at(0)?.role !== "user" || messages.at(-1)?.role !== "user") {
    return { problem: "the first and the last message must be user messages with content" };
  }
  const system = params.systemPrompt?.toWellFormed() ?? null;
  const all = messages.flatMap(({ blocks }) => blocks);
  const characters = all.reduce((sum, each) => sum + (typeof each === "string" ? each.length : 0), system?.length ?? 0);
  if (characters > maxSampleCharacters) return { problem: `it has more than ${maxSampleCharacters} characters` };
  if (all.filter((each) => typeof each !== "string").length > maxPictures) {
    return { problem: `it has more than ${maxPictures} pictures` };
  }
  const stopSequences = (params.stopSequences ?? [])
    .filter((each) => /\S/.test(each) && each.length <= 200)
    .slice(0, 4);
  return { system, messages, maxTokens: params.maxTokens, stopSequences };
}

/** The text of the last user message of the request. */
export function wordsOf({ messages }: ReadRequest): string {
  const texts = messages.at(-1)?.blocks.map((block) => (typeof block === "string" ? block : "[a picture]")) ?? [];
  return texts.join("\n");
}
