// Collects what replicas report: one that is slow to answer gets more time.

/**
 * Gathers until `isComplete`, with each wait of `waitsMs` in turn; returns what was gathered in all of them. `gather`: the reports that
 * arrive within `waitMs`. Rejects when one of the two does.
 */
export async function gatherUntil<Report>(
  waitsMs: readonly number[],
  gather: (waitMs: number) => Promise<readonly Report[]>,
  isComplete: (reports: readonly Report[]) => boolean | Promise<boolean>,
): Promise<Report[]> {
  const reports: Report[] = [];
  for (const waitMs of waitsMs) {
    reports.push(...(await gather(waitMs)));
    if (await isComplete(reports)) break;
  }
  return reports;
}
