// A service whose running work never ends.
import { openLog, runService } from "@parley/chassis";

await runService(
  "store",
  (_env, base) => base,
  async (config, { metrics }) => ({
    unready: () => null,
    metrics,
    log: openLog(config),
    ended: new Promise(() => undefined),
    close: () => new Promise(() => undefined),
  }),
);
