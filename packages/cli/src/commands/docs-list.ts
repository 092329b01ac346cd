// `parley docs list`: all documents without their content.

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { DocumentsAnswer } from "../docs/answers.ts";
import { documentsTable } from "../docs/text.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson } from "../io.ts";

export const run: Run = async ({ values, io }) => {
  const query = values.has("removed") ? "?removed=true" : "";
  const answer = await new Gateway(findTarget(values, io)).get(`/api/documents${query}`, DocumentsAnswer);
  if (values.has("json")) printJson(io, answer);
  else print(io, documentsTable(answer.documents, painter(io.stdout, io.env)));
  return exitCodes.ok;
};
