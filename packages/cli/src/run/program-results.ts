// The result of a tool of the program, as text for the model. Pure.

import { z } from "zod";

const Result = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});
const Text = z.looseObject({ type: z.literal("text"), text: z.string() });
const Link = z.looseObject({ type: z.literal("resource_link"), uri: z.string() });
const Resource = z.looseObject({
  type: z.literal("resource"),
  resource: z.looseObject({ uri: z.string(), text: z.string().optional() }),
});

/** Content other than text is only named. A result that is not valid is an error. */
export function resultText(value: unknown): { content: string; isError: boolean } {
  const parsed = Result.safeParse(value);
  if (!parsed.success) return { content: "The program's answer is not the result of a tool.", isError: true };
  const { content = [], structuredContent, isError = false } = parsed.data;
  const texts = content.map(blockText);
  // Servers repeat structured content as text for clients that do not know it.
  const isRepeated = texts.length > 0 || structuredContent === undefined;
  const text = [...texts, ...(isRepeated ? [] : [JSON.stringify(structuredContent)])].join("\n");
  return { content: text === "" ? "(the tool returned no content)" : text, isError };
}

function blockText(block: { type: string }): string {
  const text = Text.safeParse(block);
  if (text.success) return text.data.text;
  const link = Link.safeParse(block);
  if (link.success) return `[link to ${link.data.uri}]`;
  const resource = Resource.safeParse(block);
  if (resource.success) return resource.data.resource.text ?? `[resource ${resource.data.resource.uri}; not shown]`;
  return `[${block.type.slice(0, 64)}; not shown]`;
}
