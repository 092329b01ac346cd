// Examples of a tool's arguments for endpoints that have no place of their own for them; pure.
import type { PromptTool } from "./provider.ts";

/** The description, with the examples behind it. */
export function withExamples({ description, examples = [] }: PromptTool): string {
  return [description, ...examples.map((example) => `Example: ${JSON.stringify(example)}`)].join("\n");
}
