// The process: configuration, start, drain. What the service is made of stands in `service.ts`.
import { runService } from "@parley/chassis";
import { readConfig } from "./config.ts";
import { start } from "./service.ts";

await runService("channel-gateway", readConfig, (config, context) => start(config, { context }));
