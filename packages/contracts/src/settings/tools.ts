// Tools: how calls are run, and what stands between `exec` and the machine.
import { z } from "zod";
import { toolExecutions } from "./agent.ts";

export const ToolSettings = z
  .strictObject({
    /** Names of the tools the agent has; `*` stands for all. */
    enabled: z.array(z.string()).default(["*"]),
    /** Names of tools the agent does not have, whatever `enabled` says. */
    disabled: z.array(z.string()).default([]),
    /** `readonly_parallel`: calls that only read run side by side. Results come in call order in every mode. */
    execution: z.enum(toolExecutions).default("readonly_parallel"),
    /** Calls of one step at the same time. */
    max_parallel: z.number().int().min(1).max(64).default(8),
    /** Characters of one result the model is shown; the rest is cut with a notice that says how to read on. 0 = no limit but the bus's. */
    max_result_chars: z.number().int().min(0).default(40_000),
    /** Calls one tool-runner replica works on at the same time. */
    max_concurrent_calls: z.number().int().min(1).max(256).default(16),
    exec: z
      .strictObject({
        /** `auto`: bubblewrap where it works, else `exec` is refused. `container`: the pod is the sandbox. `none`: no isolation, said so. `off`: no `exec`. */
        isolation: z.enum(["auto", "bubblewrap", "container", "none", "off"]).default("auto"),
        timeout_seconds: z.number().int().min(1).max(3_600).default(120),
      })
      .prefault({}),
  })
  .prefault({});
