// `parley docs diff`: what changed between two versions of a document, as a unified diff.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { fetchDocument, fetchNewest } from "../docs/answers.ts";
import { givenPath, givenVersion } from "../docs/arguments.ts";
import { paintDiff, unifiedDiff, versionsOf, type Side } from "../docs/diff.ts";
import { CliError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, painter, printJson } from "../io.ts";
import { stripControl } from "../text.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = givenPath(positionals);
  const given = { from: givenVersion(values, "from"), to: givenVersion(values, "to") };
  const gateway = new Gateway(findTarget(values, io));
  const { from, to } = versionsOf(given, (await fetchNewest(gateway, path)).version);
  const sideOf = async (version: number): Promise<Side> =>
    version === 0 ? null : await fetchDocument(gateway, path, version);
  const sides = [await sideOf(from), await sideOf(to)] as const;
  const patch = unifiedDiff(path, ...sides);
  if (patch === null)
    throw new CliError(`Versions ${from} and ${to} of ${path} are too different to compare.`, {
      fix: `parley docs show ${path} --at ${from} shows one of them.`,
    });
  if (values.has("json")) printJson(io, { path, from, to, patch });
  else if (patch === "") note(io, `Versions ${from} and ${to} of ${path} have the same text.`);
  else io.stdout.write(io.stdout.isTTY ? paintDiff(stripControl(patch), painter(io.stdout, io.env)) : patch);
  return exitCodes.ok;
};
