export { readConfig, type StoreConfig } from "./config.ts";
export { migrate } from "./db/migrate.ts";
export { start } from "./service.ts";
