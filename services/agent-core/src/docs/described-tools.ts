// The tools of this service for docs/tools.md: as they are with the settings' defaults and somebody who speaks, described and never
// run.
import { ParleySettingsSchema } from "@parley/contracts";
import type { LocalTool } from "../tools/local-tool.ts";
import { localTools } from "../tools/local-tools.ts";
import { callTool, toolSearchTool } from "../tools/tool-search.ts";

/** Every tool there can be, for its description: they are not run. */
export function describedTools(): LocalTool[] {
  const settings = ParleySettingsSchema.parse({
    voice: { speech: { url: "http://localhost", model: "described-only" } },
  });
  const { speech } = settings.voice;
  if (speech === undefined) throw new Error("settings with a voice have none");
  const notRun = () => Promise.reject(new Error("described only"));
  return [
    ...localTools(settings, { search: notRun }, { settings: speech, synthesize: notRun }),
    toolSearchTool({ descriptors: [], find: () => undefined }),
    callTool,
  ];
}
