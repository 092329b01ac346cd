export { readConfig, type Config } from "./config.ts";
export { start, type Overrides } from "./service.ts";
