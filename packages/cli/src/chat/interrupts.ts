// Handles Ctrl-C while waiting for an answer.

import { note, type Io } from "../io.ts";

/** The first Ctrl-C requests a stop, the second leaves. */
export function onInterrupts(io: Io, first: () => void) {
  const { promise: twice, resolve } = Promise.withResolvers<"interrupted">();
  let count = 0;
  const onSignal = (): void => {
    count += 1;
    if (count > 1) return resolve("interrupted");
    note(io, "stopping; press Ctrl-C again to leave at once");
    first();
  };
  process.on("SIGINT", onSignal);
  return { twice, happened: () => count > 0, stop: () => void process.off("SIGINT", onSignal) };
}
