// `parley pairing list`: the open pairing requests.

import { Gateway } from "../cluster/gateway.ts";
import { PairingsAnswer } from "../cluster/shapes.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print, printJson } from "../io.ts";
import { localTime } from "../sessions/text.ts";
import { oneLine, table } from "../text.ts";

export const run: Run = async ({ values, io }) => {
  const answer = await new Gateway(findTarget(values, io)).get("/api/pairings", PairingsAnswer);
  if (values.has("json")) {
    printJson(io, answer);
    return exitCodes.ok;
  }
  if (answer.pairings.length === 0) {
    print(io, "There are no open pairing requests.");
    return exitCodes.ok;
  }
  const paint = painter(io.stdout, io.env);
  const head = ["CHANNEL", "ACCOUNT", "PERSON", "NAME", "EXPIRES"].map((cell) => paint("dim", cell));
  const rows = answer.pairings.map(({ channel, account, contactId, name, expiresAt }) => [
    channel,
    account,
    oneLine(contactId, 40),
    name === null ? "-" : oneLine(name, 40),
    localTime(expiresAt),
  ]);
  print(io, table([head, ...rows]));
  print(io, "\nAsk the person for their code, then run: parley pairing approve <code>");
  return exitCodes.ok;
};
