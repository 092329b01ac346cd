// Provides this service's tools for docs/tools.md, with default settings and a speech service. They are never run.
import { ParleySettingsSchema } from "@parley/contracts";
import type { LocalTool } from "../tools/local-tool.ts";
import { localTools } from "../tools/local-tools.ts";
import { callTool, toolSearchTool } from "../tools/tool-search.ts";

/** All local tools, including the optional ones. */
export function describedTools(): LocalTool[] {
  const settings = ParleySettingsSchema.parse({
    context: { built_in_skills: true },
    voice: { speech: { url: "http://localhost", model: "described-only" } },
  });
  const { speech } = settings.voice;
  if (speech === undefined) throw new Error("settings with voice.speech have no voice.speech");
  const notRun = () => Promise.reject(new Error("described only"));
  return [
    ...localTools(settings, { search: notRun }, { settings: speech, synthesize: notRun }, { current: notRun }),
    toolSearchTool({ descriptors: [], find: () => undefined }),
    callTool,
  ];
}
