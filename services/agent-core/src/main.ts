import { runService } from "@parley/chassis";
import { readConfig } from "./config.ts";
import { start } from "./service.ts";

await runService("agent-core", readConfig, (config, context) => start(config, { context }));
