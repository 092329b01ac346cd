export { readConfig, type AgentConfig } from "./config.ts";
export { start } from "./service.ts";
