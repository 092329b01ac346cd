// `parley docs restore`: writes an old text as a new version; its lines keep their authors. The history stays, and concurrent changes
// are not overwritten.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { ChangedAnswer, fetchAuthored, fetchDocument, fetchNewest, isConflict } from "../docs/answers.ts";
import { givenPath, givenVersion } from "../docs/arguments.ts";
import { counted, untrustedLines } from "../docs/vouching.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = givenPath(positionals);
  const version = givenVersion(values, "version");
  if (version === undefined)
    throw new UsageError(`Name a version with --version; parley docs history ${path} lists them.`);
  const gateway = new Gateway(findTarget(values, io));
  const newest = await fetchNewest(gateway, path);
  const old = await fetchDocument(gateway, path, version);
  if (old.deleted)
    throw new CliError(`Version ${version} of ${path} is the removal: it has no text.`, {
      fix: `parley docs restore ${path} --version ${version - 1} restores the text before it.`,
    });
  const change = { path, version, expectedVersion: newest.version };
  const { status, document } = await gateway
    .post("/api/documents/restore", change, ChangedAnswer)
    .catch((error: unknown) => {
      if (!isConflict(error)) throw error;
      throw new CliError(`${error.message}. Nothing was written.`, {
        fix: `Review the change with parley docs diff ${path}, then restore again.`,
        cause: error,
      });
    });
  if (status === "unchanged") {
    print(io, `${path} already has the text of version ${version}.`);
    return exitCodes.ok;
  }
  print(io, `${path} has the text of version ${version} again, as version ${document.version}.`);
  const untrusted = untrustedLines(await fetchAuthored(gateway, path, document.version));
  if (untrusted.length > 0)
    note(
      io,
      `It contains ${counted(untrusted.length)} written from untrusted content, which stay untrusted. parley docs vouch ${path} shows them and marks them as trusted; parley docs edit ${path} changes them.`,
    );
  return exitCodes.ok;
};
