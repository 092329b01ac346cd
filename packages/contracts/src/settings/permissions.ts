// What the agent may do on its own, and what a person has to say yes to.
import { z } from "zod";

export const permissionModes = ["default", "accept_edits", "plan", "dont_ask", "bypass", "delegate"] as const;
export type PermissionMode = (typeof permissionModes)[number];

/** `exec(git *)`, `write(notes/*)`, `mcp__github__*`: a tool's name, and in brackets what its main argument must match. */
const rule = z.string().min(1);

export const PermissionSettings = z
  .strictObject({
    mode: z.enum(permissionModes).default("default"),
    /** `bypass` is refused unless this is true. */
    allow_bypass: z.boolean().default(false),
    allow: z.array(rule).default([]),
    deny: z.array(rule).default([]),
    ask: z.array(rule).default([]),
    /** How long a person has to answer; then it is a no. */
    approval_seconds: z.number().int().min(1).max(86_400).default(900),
    /** A turn that has read untrusted content needs a yes for what could carry it on. */
    taint: z.boolean().default(true),
  })
  .prefault({});
export type PermissionSettings = z.infer<typeof PermissionSettings>;
