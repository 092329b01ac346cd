// The entry point of the process: configuration, start, drain. `service.ts` assembles the service.
import { runService } from "@parley/chassis";
import { readConfig } from "./config.ts";
import { start } from "./service.ts";

await runService("channel-gateway", readConfig, (config, context) => start(config, { context }));
