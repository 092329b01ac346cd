// All operations, by noun. Each export is one definition.
export * from "./approvals.ts";
export * from "./channels.ts";
export * from "./checkpoints.ts";
export * from "./cluster.ts";
export * from "./conversation.ts";
export * from "./documents.ts";
export * from "./mcp.ts";
export * from "./people.ts";
export * from "./program-calls.ts";
export * from "./queue.ts";
export * from "./rules.ts";
export * from "./schedules.ts";
export * from "./sessions.ts";
export * from "./skills.ts";
export * from "./tokens.ts";
export * from "./voice.ts";
export * from "./work.ts";
