// `parley pairing approve`: lets the person in who was shown the code.

import { Gateway, Refused } from "../cluster/gateway.ts";
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
    throw new UsageError("Which code? The person was shown one: parley pairing approve ABCD-EFGH");
  const role = values.text("role") ?? "user";
  if (role === "owner")
    note(io, "an owner shares your thread: they see what you said, and the agent works for them as for you");
  const gateway = new Gateway(findTarget(values, io));
  const answer = await gateway.post("/api/pairings/approve", { code, role }, ApprovedAnswer).catch((error: unknown) => {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    throw new CliError("No open request has this code: it is wrong, used, or older than an hour.", {
      fix: "parley pairing list shows the open ones; whoever writes again gets a new code.",
    });
  });
  const { channel, account, contactId, name } = answer.contact;
  if (values.has("json")) printJson(io, answer);
  else print(io, `${oneLine(name ?? contactId, 60)} (${contactId}) on ${channel}/${account} is let in as ${role}.`);
  return exitCodes.ok;
};
