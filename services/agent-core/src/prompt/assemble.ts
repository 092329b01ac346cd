// Assembles the system prompt from sections in a fixed order. Pure: equal input yields equal bytes, so that a session keeps its
// prompt and the provider's cache stays valid. Later changes are appended to the conversation (document-notes.ts).
import type { ContextSettings, OutputMode } from "@parley/contracts";
import { selectDocuments, renderDocuments, type PromptDocuments, type Selection } from "./documents.ts";
import * as sections from "./sections.ts";
import { renderSkills, type Skill } from "./skills.ts";

export interface PromptInput extends Selection {
  /** Text of the deployment or the profile; it follows the identity section. */
  custom: string | undefined;
  output: OutputMode;
  /** Whether messages begin with a line that names their source. */
  sourceTags: boolean;
  /** Names of the tools of the same request, in any order. */
  tools: readonly string[];
  documents: PromptDocuments;
  skills: readonly Skill[];
  runtime: sections.Runtime;
  context: ContextSettings;
}

export function assemblePrompt(input: PromptInput): string {
  const tools = new Set(input.tools);
  const has: sections.HasTool = (...names) => names.every((name) => tools.has(name));
  const minimal = input.mode === "minimal";
  const documents = renderDocuments(selectDocuments(input.documents, input), input.context, has("read"));
  const sorted = input.skills.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const own = [sections.identity(input.mode), input.custom?.trim() ?? ""];
  const documentsSection = sections.section("Documents", documents.text);
  const all = minimal
    ? [...own, sections.tooling(input.tools, has), sections.workspace(), documentsSection]
    : [
        ...own,
        sections.outputSection(input.output, input.sourceTags, has),
        sections.tooling(input.tools, has),
        sections.toolCallStyle(),
        sections.safety(),
        sections.section(
          "Skills",
          renderSkills(sorted, input.context, {
            canRead: has("read"),
            canLoad: has("skill"),
            bodyChars: documents.leftChars,
          }),
        ),
        sections.memoryRecall(input.audience, has),
        sections.workspace(),
        documentsSection,
        input.audience === "owner" ? sections.heartbeat() : "",
        sections.runtime(input.runtime),
      ];
  return all.filter((text) => text !== "").join("\n\n");
}
