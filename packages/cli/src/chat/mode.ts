// --mode: what is done with a message while its session is busy.

import { queueModes, type QueueMode } from "@parley/contracts";

import type { OptionValues } from "../command-line/options.ts";

/** Left out: as the session or the settings say. The command line has only let a known one through. */
export function modeOf(values: OptionValues): QueueMode | undefined {
  const given = values.text("mode");
  return queueModes.find((mode) => mode === given);
}
