// Entry point of the tool-runner process.
import { runService } from "@parley/chassis";
import { readConfig } from "./config.ts";
import { start } from "./service.ts";

await runService("tool-runner", readConfig, (config, context) => start(config, { context }));
