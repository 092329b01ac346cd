// `parley docs restore`: an old text becomes the newest version, its lines of whoever wrote them. Nothing of the history is rewritten,
// and what somebody else writes meanwhile is not written over.

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
  if (version === undefined) throw new UsageError(`Which version? parley docs history ${path} shows them.`);
  const gateway = new Gateway(findTarget(values, io));
  const newest = await fetchNewest(gateway, path);
  const old = await fetchDocument(gateway, path, version);
  if (old.deleted)
    throw new CliError(`Version ${version} of ${path} is the one that removed it: it has no text.`, {
      fix: `parley docs restore ${path} --version ${version - 1} brings back what stood there before.`,
    });
  const change = { path, version, expectedVersion: newest.version };
  const { status, document } = await gateway
    .post("/api/documents/restore", change, ChangedAnswer)
    .catch((error: unknown) => {
      if (!isConflict(error)) throw error;
      throw new CliError(`${error.message}. Nothing was written.`, {
        fix: `parley docs diff ${path} shows what came; then restore again.`,
        cause: error,
      });
    });
  if (status === "unchanged") {
    print(io, `${path} is as in version ${version} already.`);
    return exitCodes.ok;
  }
  print(io, `${path} has the text of version ${version} again, as version ${document.version}.`);
  const untrusted = untrustedLines(await fetchAuthored(gateway, path, document.version));
  if (untrusted.length > 0)
    note(
      io,
      `It holds ${counted(untrusted.length)} that outsiders had a hand in, and they count as theirs, as they did then. parley docs vouch ${path} shows them and makes them yours; parley docs edit ${path} changes them.`,
    );
  return exitCodes.ok;
};
