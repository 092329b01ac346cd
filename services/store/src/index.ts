export { readConfig, type StoreConfig } from "./config.ts";
export { migrate } from "./migrate.ts";
export { start } from "./service.ts";
