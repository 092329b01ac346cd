// `parley docs history`: the versions of one document, newest first.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { HistoryAnswer } from "../docs/answers.ts";
import { historyTable } from "../docs/text.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, painter, print, printJson } from "../io.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [path] = positionals;
  if (path === undefined) throw new UsageError("Which document? parley docs list shows them.");
  const query = new URLSearchParams({ path, limit: "200" }).toString();
  const answer = await new Gateway(findTarget(values, io)).get(`/api/documents/history?${query}`, HistoryAnswer);
  if (answer.versions.length === 0) throw new CliError(`There never was a document ${path}.`);
  if (values.has("json")) printJson(io, answer);
  else print(io, historyTable(answer.versions, painter(io.stdout, io.env)));
  if (answer.more) note(io, "Older versions are not shown.");
  return exitCodes.ok;
};
