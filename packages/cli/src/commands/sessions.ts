// `parley sessions`: all conversations, most recently used first.

import { Gateway } from "../cluster/gateway.ts";
import { SessionsAnswer } from "../cluster/shapes.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson } from "../io.ts";
import { sessionsTable } from "../sessions/text.ts";

export const run: Run = async ({ values, io }) => {
  const { sessions } = await new Gateway(findTarget(values, io)).get("/api/sessions?limit=200", SessionsAnswer);
  if (values.has("json")) printJson(io, { sessions });
  else print(io, sessionsTable(sessions, painter(io.stdout, io.env)));
  return exitCodes.ok;
};
