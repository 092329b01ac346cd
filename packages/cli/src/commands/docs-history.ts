// `parley docs history`: the versions of one document, newest first.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { fetchHistory } from "../docs/answers.ts";
import { givenPath } from "../docs/arguments.ts";
import { historyTable } from "../docs/text.ts";
import { CliError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, painter, print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const path = givenPath(positionals);
  const answer = await fetchHistory(new Gateway(findTarget(values, io)), path, { limit: 200 });
  if (answer.versions.length === 0) throw new CliError(`There has never been a document ${path}.`);
  if (values.has("json")) printJson(io, answer);
  else print(io, historyTable(answer.versions, painter(io.stdout, io.env)));
  if (answer.more) note(io, "Older versions are not shown.");
  return exitCodes.ok;
};
