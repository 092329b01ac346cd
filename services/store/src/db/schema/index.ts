// All tables. Statements that are not built from the tables name the same columns.
export * from "./api-tokens.ts";
export * from "./blobs.ts";
export * from "./checkpoints.ts";
export * from "./console.ts";
export * from "./contacts.ts";
export * from "./coordination.ts";
export * from "./documents.ts";
export * from "./inbox.ts";
export * from "./memory.ts";
export * from "./outbox.ts";
export * from "./processes.ts";
export * from "./questions.ts";
export * from "./schedules.ts";
export * from "./sessions.ts";
export * from "./steps.ts";
export * from "./turns.ts";
export * from "./voice.ts";
