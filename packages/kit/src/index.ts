// Small helpers that every package may use. Imports nothing of the project.
export * from "./abortable.ts";
export * from "./backoff.ts";
export * from "./builtin-http.ts";
export * from "./fair-semaphore.ts";
export * from "./ids.ts";
export * from "./json.ts";
export * from "./object.ts";
export * from "./rerun-while-requested.ts";
export * from "./sealed-box.ts";
export * from "./text.ts";
export * from "./throttle.ts";
export * from "./time.ts";
export * from "./webhook-signature.ts";
