// `parley docs vouch`: a person has read a document and takes all of its lines on themselves. Only for the version that was read:
// what somebody else writes meanwhile is not vouched for.

import { askYes, canAsk } from "../ask.ts";
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
      "Which version have you read? Without a terminal to ask on, --version says it.",
      `parley docs show ${path} --authors shows the text, whose lines they are, and the version.`,
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
      throw new CliError(`${error.message}. You have vouched for nothing.`, {
        fix: `parley docs diff ${path} --from ${read} shows what is different; then read it and vouch again.`,
        cause: error,
      });
    });
  print(io, status === "unchanged" ? nothingToDo(path) : vouched(path, document.version));
  return exitCodes.ok;
};

/** The version that a person has seen and said yes to; null: there is nothing to do, or it was a no. */
async function readAndAsked(gateway: Gateway, path: string, io: Io): Promise<number | null> {
  const document = await fetchAuthored(gateway, path).catch((error: unknown) => {
    throw isMissing(error) ? missing(path, error) : error;
  });
  if (isOwners(document)) {
    print(io, nothingToDo(path));
    return null;
  }
  print(io, vouchText(document, painter(io.stdout, io.env)));
  if (await askYes(io, `Vouch for all of version ${document.version} as it stands?`)) return document.version;
  print(io, "You have vouched for nothing.");
  return null;
}

function nothingToDo(path: string): string {
  return `Nothing to vouch for: all of ${path} is yours already.`;
}

function vouched(path: string, version: number): string {
  return `All of ${path} is yours now, as version ${version}.`;
}

function missing(path: string, cause: unknown): CliError {
  return new CliError(`There is no document ${path}.`, { fix: "parley docs list shows which there are.", cause });
}
