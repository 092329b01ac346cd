// Formats an MCP server's result for the model: text, wrapped as untrusted content, and attachments for other content.
import type { CallToolResult, ContentBlock, ReadResourceResult } from "@modelcontextprotocol/client";
import { attachmentName, sizeText, type Attachment } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { ContentRejectedError, type AttachmentStore } from "../tool/attachments.ts";
import { formatCall, type ToolOutput } from "../tool/tool.ts";
import { wrapUntrusted } from "../tool/untrusted-block.ts";

/** Maximum number of attachments per result; further content is only named. */
const maxKept = 8;
/** Maximum total size of the attachments, in bytes. */
const maxKeptBytes = 40 * 1024 * 1024;

/** `notes`: our remarks about the call. Without `contents`, content other than text is only named. */
export async function toolOutput(
  server: string,
  result: CallToolResult,
  notes: readonly string[],
  contents?: AttachmentStore,
): Promise<ToolOutput> {
  const kept = new ResultAttachments(contents);
  const texts: string[] = [];
  for (const block of result.content) texts.push(await blockText(server, block, kept));
  const structured = structuredText(result);
  if (structured !== undefined) texts.push(structured);
  const text = texts.filter((text) => text !== "").join("\n");
  const content = text === "" ? "(the server returned no content)" : wrapUntrusted(`the MCP server ${server}`, text);
  return { content: [content, ...notes].join("\n"), isError: result.isError === true, ...kept.shown };
}

export async function readOutput(
  server: string,
  uri: string,
  result: ReadResourceResult,
  contents?: AttachmentStore,
): Promise<ToolOutput> {
  const kept = new ResultAttachments(contents);
  const texts: string[] = [];
  for (const resource of result.contents) texts.push(await resourceText(resource, kept));
  const text = texts.length === 0 ? "(empty)" : texts.join("\n");
  return { content: wrapUntrusted(`${uri} of the MCP server ${server}`, text), isError: false, ...kept.shown };
}

/** The attachments of one result. */
export class ResultAttachments {
  readonly #contents: Pick<AttachmentStore, "keep"> | undefined;
  readonly #attachments: Attachment[] = [];
  #bytes = 0;

  constructor(contents: Pick<AttachmentStore, "keep"> | undefined) {
    this.#contents = contents;
  }

  get attachments(): readonly Attachment[] {
    return this.#attachments;
  }

  get shown(): Pick<ToolOutput, "shownAttachments"> {
    return this.#attachments.length === 0 ? {} : { shownAttachments: [...this.#attachments] };
  }

  /** Stores content and returns a note about it. `what`: the server's name for it. */
  async keep(what: string, name: string, data: string): Promise<string> {
    const bytes = base64Bytes(data);
    const about = `${what}, ${sizeText(bytes)}`;
    const full = this.#attachments.length >= maxKept || this.#bytes + bytes > maxKeptBytes;
    if (this.#contents === undefined || full || bytes === 0) return `[${about}; not shown]`;
    try {
      const kept = { ...(await this.#contents.keep(Buffer.from(data, "base64"))), name };
      this.#bytes += bytes;
      if (!this.#attachments.some(({ sha256 }) => sha256 === kept.sha256)) this.#attachments.push(kept);
      return `[${about}; attached as "${name}", id ${kept.sha256}]`;
    } catch (error) {
      if (!(error instanceof ContentRejectedError)) throw error;
      return `[${about}; not shown: ${error.message}]`;
    }
  }
}

/** The structured content, unless a text block contains the same JSON. */
function structuredText({ content, structuredContent }: CallToolResult): string | undefined {
  if (structuredContent === undefined) return undefined;
  const json = JSON.stringify(structuredContent);
  const isRepeated = content.some((block) => block.type === "text" && JSON.stringify(parseJson(block.text)) === json);
  return isRepeated ? undefined : JSON.stringify(structuredContent, null, 2);
}

/** One block as text; other content is added to `kept`. */
export async function blockText(server: string, block: ContentBlock, kept: ResultAttachments): Promise<string> {
  if (block.type === "text") return block.text;
  if (block.type === "resource") return resourceText(block.resource, kept);
  if (block.type === "resource_link") {
    const about = [block.mimeType, block.description].filter((part) => part !== undefined).join("; ");
    const named = about === "" ? block.name : `${block.name} (${about})`;
    return `[resource ${named}: read it with ${formatCall("mcp_read", { server, uri: block.uri })}]`;
  }
  const [, subtype = "bin"] = block.mimeType.split("/");
  const name = attachmentName(`${block.type}.${subtype.replaceAll(/[^a-z0-9]/gi, "").slice(0, 10)}`, block.type);
  return kept.keep(`${block.type}: ${block.mimeType}`, name, block.data);
}

async function resourceText(
  resource: ReadResourceResult["contents"][number],
  kept: ResultAttachments,
): Promise<string> {
  const type = resource.mimeType ?? "unknown type";
  if ("text" in resource) return `[${resource.uri}, ${type}]\n${resource.text}`;
  return kept.keep(`${resource.uri}, ${type}`, attachmentName(resource.uri, "resource"), resource.blob);
}

function base64Bytes(data: string): number {
  return Math.floor((data.replace(/=+$/, "").length * 3) / 4);
}
