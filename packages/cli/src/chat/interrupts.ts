// Ctrl-C while an answer is waited for.

/** The first Ctrl-C asks to stop, the second leaves. */
export function onInterrupts(first: () => void) {
  const { promise: twice, resolve } = Promise.withResolvers<"interrupted">();
  let count = 0;
  const onSignal = (): void => {
    count += 1;
    if (count === 1) first();
    else resolve("interrupted");
  };
  process.on("SIGINT", onSignal);
  return { twice, happened: () => count > 0, stop: () => void process.off("SIGINT", onSignal) };
}
