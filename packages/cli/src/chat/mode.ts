// --mode: how a message is handled while its session is busy.

import { queueModes, type QueueMode } from "@parley/contracts";

import type { OptionValues } from "../command-line/options.ts";

/** Undefined: the session or the settings decide. The parser has already validated the value. */
export function modeOf(values: OptionValues): QueueMode | undefined {
  const given = values.text("mode");
  return queueModes.find((mode) => mode === given);
}
