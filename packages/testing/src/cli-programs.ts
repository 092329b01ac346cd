// The executables of the CLI that tests start as processes. A module of its own, because most tests of the CLI need nothing else of this
// package.
import { fileURLToPath } from "node:url";
import { z } from "zod";

const CliPrograms = z.object({ parley: z.string(), "parley-sdk": z.string() });

/** The executables of this checkout, as users start them: `parley-sdk` through the bootstrap. */
export const checkoutPrograms: z.infer<typeof CliPrograms> = {
  parley: fileURLToPath(new URL("../../cli/src/main.ts", import.meta.url)),
  "parley-sdk": fileURLToPath(new URL("../../cli/bin/parley-sdk.mjs", import.meta.url)),
};

/** Those of the bundle that `npm test` has built for all test files: they start with half the CPU time. Without it, those of this checkout. */
export function cliPrograms(): z.infer<typeof CliPrograms> {
  const { PARLEY_TEST_BUNDLES: bundles } = process.env;
  return bundles === undefined ? checkoutPrograms : CliPrograms.parse(JSON.parse(bundles));
}
