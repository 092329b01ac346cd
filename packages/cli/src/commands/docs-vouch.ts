// `parley docs vouch`: marks all lines of a document as trusted after a person has read them. It applies only to the version that was
// read; concurrent changes are not marked.

import { confirm, canAsk } from "../ask.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { ChangedAnswer, fetchAuthored, isConflict, isMissing } from "../docs/answers.ts";
import { givenPath, givenVersion } from "../docs/arguments.ts";
import { isOwners, vouchText } from "../docs/vouching.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, type Io } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = givenPath(positionals);
  const given = givenVersion(values, "version");
  if (given === undefined && !canAsk(io))
    throw new UsageError(
      "Without a terminal, name the version that you have read with --version.",
      `parley docs show ${path} --authors prints the text, the author of each line, and the version.`,
    );
  const gateway = new Gateway(findTarget(values, io));
  const read = given ?? (await readAndAsked(gateway, path, io));
  if (read === null) return exitCodes.ok;
  const change = { path, expectedVersion: read };
  const { status, document } = await gateway
    .post("/api/documents/vouch", change, ChangedAnswer)
    .catch((error: unknown) => {
      if (isMissing(error)) throw missing(path, error);
      if (!isConflict(error)) throw error;
      throw new CliError(`${error.message}. Nothing was marked as trusted.`, {
        fix: `Review the change with parley docs diff ${path} --from ${read}, then run vouch again.`,
        cause: error,
      });
    });
  print(io, status === "unchanged" ? nothingToDo(path) : vouched(path, document.version));
  return exitCodes.ok;
};

/** The version that the person has read and confirmed; null when there is nothing to do or they declined. */
async function readAndAsked(gateway: Gateway, path: string, io: Io): Promise<number | null> {
  const document = await fetchAuthored(gateway, path).catch((error: unknown) => {
    throw isMissing(error) ? missing(path, error) : error;
  });
  if (isOwners(document)) {
    print(io, nothingToDo(path));
    return null;
  }
  print(io, vouchText(document, painter(io.stdout, io.env)));
  if (await confirm(io, `Mark all lines of version ${document.version} as trusted?`)) return document.version;
  print(io, "Nothing was marked as trusted.");
  return null;
}

function nothingToDo(path: string): string {
  return `Nothing to do: all lines of ${path} are already yours.`;
}

function vouched(path: string, version: number): string {
  return `All lines of ${path} are now yours, as version ${version}.`;
}

function missing(path: string, cause: unknown): CliError {
  return new CliError(`There is no document ${path}.`, { fix: "parley docs list shows all documents.", cause });
}
