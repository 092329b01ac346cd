// `parley pairing list`: who asked to be let in.

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
    print(io, "Nobody asks to be let in.");
    return exitCodes.ok;
  }
  const paint = painter(io.stdout, io.env);
  const head = ["CHANNEL", "ACCOUNT", "PERSON", "NAME", "GOOD UNTIL"].map((cell) => paint("dim", cell));
  const rows = answer.pairings.map(({ channel, account, contactId, name, expiresAt }) => [
    channel,
    account,
    oneLine(contactId, 40),
    name === null ? "-" : oneLine(name, 40),
    localTime(expiresAt),
  ]);
  print(io, table([head, ...rows]));
  print(io, "\nThe person tells you the code they were shown: parley pairing approve <code>");
  return exitCodes.ok;
};
