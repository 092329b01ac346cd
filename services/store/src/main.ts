import { runService } from "@parley/chassis";
import { readConfig } from "./config.ts";
import { start } from "./service.ts";

await runService("store", readConfig, (config, context) => start(config, { context }));
