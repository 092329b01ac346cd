// `exit_plan_mode`: presents a plan for approval. The permission engine asks a person; the approved call ends the plan mode.
import { store } from "@parley/contracts";
import { z } from "zod";
import { localTool } from "./local-tool.ts";

export const exitPlanModeTool = localTool({
  name: "exit_plan_mode",
  aliases: ["ExitPlanMode"],
  summary: "Present a plan.",
  description:
    "Only in plan mode: present your plan for approval. If a person approves it, plan mode ends and you carry it out. Not for questions: ask those before.",
  input: z.object({ plan: z.string().min(1).max(20_000).describe("The plan: what you will do, step by step.") }),
  examples: [{ plan: "1. Rename the field in schema.sql. 2. Adapt the two callers. 3. Run the tests." }],
  class: "idempotent",
  readOnly: true,
  risk: "none",
  effects: [],
  limits: ["20,000 characters of a plan."],
  async run(_input, { leaderStore, policy, settings, turn }) {
    // Also after a restart between the change and the result.
    if (policy.permissionMode !== "plan")
      return { status: "done", content: "The session is not in plan mode. Carry the plan out now." };
    // Null: the mode of the settings.
    const permissionMode = settings.permissions.mode === "plan" ? "default" : null;
    await leaderStore.request(store.sessionUpdate, { sessionId: turn.sessionId, overrides: { permissionMode } });
    const mode = permissionMode ?? settings.permissions.mode;
    return {
      status: "done",
      content: `The plan is approved, and the permission mode is ${mode}. Carry the plan out now.`,
    };
  },
});
