// The tools of this service for docs/tools.md, with default settings. They are only described, never run.
import { ParleySettingsSchema } from "@parley/contracts";
import { defaultExecLimits } from "../sandbox/limits.ts";
import { Processes } from "../processes/processes.ts";
import type { Tool } from "../tool/tool.ts";
import { execTimes } from "../tools/exec.ts";
import { builtInTools } from "../tools/built-in-tools.ts";
import { systemResolver } from "../web/fetch-page.ts";
import { fetchOptions } from "../web/settings.ts";

/** All built-in tools, for their descriptions only. */
export function describedTools(): Tool[] {
  const { tools: settings } = ParleySettingsSchema.parse({});
  const limits = defaultExecLimits(Number.MAX_SAFE_INTEGER);
  const processes = new Processes("", { maxPerSession: settings.exec.max_background, maxInAll: 0 });
  const notRun = () => Promise.reject(new Error("described only"));
  return builtInTools({
    exec: {
      executor: {
        isolation: { kind: "container" },
        limitedBy: "",
        mountPaths: [],
        start: notRun,
        confine: () => undefined,
      },
      limits,
      processes,
      times: execTimes(settings.exec),
    },
    processes: { list: notRun, control: notRun },
    web: { ...fetchOptions(settings.web), resolve: systemResolver },
    search: { name: "brave", key: "", url: "" },
  });
}
