// Examples of a tool's arguments for endpoints without a field for them; pure.
import type { PromptTool } from "./provider.ts";

/** The description followed by the examples. */
export function withExamples({ description, examples = [] }: PromptTool): string {
  return [description, ...examples.map((example) => `Example: ${JSON.stringify(example)}`)].join("\n");
}
