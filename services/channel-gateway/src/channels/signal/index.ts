// The entry point of the Signal adapter.
import { signalChannel } from "@parley/contracts";
import { adapterOf } from "../load.ts";
import { createSignal, type SignalTuning } from "./adapter.ts";

export { createSignal, type SignalTuning };

export const createAdapter = adapterOf(signalChannel, (account, settings) => createSignal(account, settings));
