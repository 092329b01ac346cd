// `parley pairing approve`: admits the person who received the code.

import { Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import { ApprovedAnswer } from "../cluster/shapes.ts";
import { findTarget } from "../cluster/target.ts";
import type { Run } from "../command-line/command.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, print, printJson } from "../io.ts";
import { oneLine } from "../text.ts";

export const run: Run = async ({ values, positionals, io }) => {
  const [code] = positionals;
  if (code === undefined)
    throw new UsageError("Name the code that the person received: parley pairing approve ABCD-EFGH");
  const role = values.text("role") ?? "user";
  if (role === "owner")
    note(
      io,
      "an owner shares your thread: they can read your messages, and the agent does for them everything that it does for you",
    );
  const gateway = new Gateway(findTarget(values, io));
  const answer = await gateway.post("/api/pairings/approve", { code, role }, ApprovedAnswer).catch((error: unknown) => {
    if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
    throw new CliError("No open request has this code: it is wrong, already used, or older than an hour.", {
      fix: "parley pairing list shows open requests; a person who writes again gets a new code.",
    });
  });
  const { channel, account, contactId, name } = answer.contact;
  if (values.has("json")) printJson(io, answer);
  else print(io, `${oneLine(name ?? contactId, 60)} (${contactId}) on ${channel}/${account} is admitted as ${role}.`);
  return exitCodes.ok;
};
