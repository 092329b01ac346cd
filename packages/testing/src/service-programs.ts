// The scripts of the services that tests start as processes.
import type { ServiceName } from "@parley/contracts";
import { repositoryPrograms } from "@parley/local";
import { z } from "zod";

const Programs = z.object({
  store: z.string(),
  "agent-core": z.string(),
  "tool-runner": z.string(),
  "channel-gateway": z.string(),
}) satisfies z.ZodType<Record<ServiceName, string>>;

/**
 * The bundles that `npm test` has built for all test files (JSON in `PARLEY_TEST_BUNDLES`): a process of a bundle starts with half the CPU
 * time. Without them, for example for a single file, this repository's sources.
 */
export function servicePrograms(): Readonly<Record<ServiceName, string>> {
  const bundles = suiteBundles();
  return bundles ?? repositoryPrograms.services;
}

/** The bundles that `npm test` has built; null when it has not built any. */
export function suiteBundles(): Readonly<Record<ServiceName, string>> | null {
  const { PARLEY_TEST_BUNDLES: bundles } = process.env;
  return bundles === undefined ? null : Programs.parse(JSON.parse(bundles));
}
