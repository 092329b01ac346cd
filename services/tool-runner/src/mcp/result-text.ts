// What a server answered, as the text the model reads. Pure.
import type { CallToolResult, ContentBlock, ReadResourceResult } from "@modelcontextprotocol/client";
import { callText, type ToolOutput } from "../tool.ts";
import { untrusted } from "../web/untrusted.ts";

/** `notes`: what else happened during the call, from us. */
export function toolOutput(server: string, result: CallToolResult, notes: readonly string[]): ToolOutput {
  const texts = result.content.map((block) => blockText(server, block));
  const structured = structuredText(result);
  if (structured !== undefined) texts.push(structured);
  const said = texts.filter((text) => text !== "").join("\n");
  const content = said === "" ? "(the server answered nothing)" : untrusted(`the MCP server ${server}`, said);
  return { content: [content, ...notes].join("\n"), isError: result.isError === true };
}

/** The structured part, unless a text of the answer says the same. */
function structuredText({ content, structuredContent }: CallToolResult): string | undefined {
  if (structuredContent === undefined) return undefined;
  const json = JSON.stringify(structuredContent);
  const said = content.some((block) => block.type === "text" && canonical(block.text) === json);
  return said ? undefined : JSON.stringify(structuredContent, null, 2);
}

function canonical(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function blockText(server: string, block: ContentBlock): string {
  if (block.type === "text") return block.text;
  if (block.type === "resource") return resourceText(block.resource);
  if (block.type === "resource_link") {
    const about = [block.mimeType, block.description].filter((part) => part !== undefined).join("; ");
    const named = about === "" ? block.name : `${block.name} (${about})`;
    return `[resource ${named}: ${callText("mcp_read", { server, uri: block.uri })} reads it]`;
  }
  return `[${block.type}: ${block.mimeType}, ${base64Bytes(block.data)} bytes; it cannot be shown here]`;
}

export function readOutput(server: string, uri: string, result: ReadResourceResult): ToolOutput {
  const texts = result.contents.map(resourceText);
  const said = texts.length === 0 ? "(it is empty)" : texts.join("\n");
  return { content: untrusted(`${uri} of the MCP server ${server}`, said), isError: false };
}

function resourceText(resource: ReadResourceResult["contents"][number]): string {
  const type = resource.mimeType ?? "unknown type";
  if ("text" in resource) return `[${resource.uri}, ${type}]\n${resource.text}`;
  return `[${resource.uri}, ${type}, ${base64Bytes(resource.blob)} bytes; it is not text and cannot be shown here]`;
}

function base64Bytes(data: string): number {
  return Math.floor((data.replace(/=+$/, "").length * 3) / 4);
}
