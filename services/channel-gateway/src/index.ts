// The public interface of the gateway, for running it inside another process.
export { readConfig, type GatewayConfig } from "./config.ts";
export { start, type GatewayOverrides } from "./service.ts";
