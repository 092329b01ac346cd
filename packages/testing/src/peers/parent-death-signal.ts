// Servers of a test end with it, also when the test is killed.
import { onPath } from "@parley/local";

/** The command and its arguments, wrapped so that the kernel ends it when the parent dies, where `setpriv` supports that. */
export function withParentDeathSignal(command: string, args: readonly string[]): [string, string[]] {
  const setpriv = process.platform === "linux" ? onPath("setpriv") : null;
  return setpriv === null ? [command, [...args]] : [setpriv, ["--pdeathsig", "KILL", "--", command, ...args]];
}
