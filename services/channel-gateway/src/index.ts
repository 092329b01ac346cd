// What others may use of the gateway: its front door, for running it inside another process.
export { readConfig, type GatewayConfig } from "./config.ts";
export { start, type GatewayOverrides } from "./service.ts";
