// The commands `parley pairing …`: who may write to the agent.

import { api } from "../cluster/api.ts";
import { RequestRejectedError } from "../cluster/gateway.ts";
import { CliError, note } from "../io/io.ts";
import { text } from "../io/options.ts";
import { oneLine } from "../tables/format.ts";
import { pairingsTable } from "../tables/lists.ts";
import { operand, request, type CommandSpec } from "./command.ts";

export const pairingCommands: readonly CommandSpec[] = [
  request(
    { name: "pairing list", summary: "list open pairing requests", examples: ["parley pairing list"] },
    async (gateway) => {
      const found = await gateway.run(api.pairings);
      return { data: found, text: (paint) => pairingsTable(found.pairings, paint) };
    },
  ),
  request(
    {
      name: "pairing approve",
      summary: "admit the person who received this code",
      operands: ["<code>"],
      details: `Roles:
user (the default): has conversations of their own with the agent, each with a separate workspace. There the agent reads files
without approval, runs commands in the sandbox by [permissions], and needs your approval to write or send elsewhere.
They cannot reach your files, memory and secrets, unless [workspace] share_with_users = true.
guest: talks to the agent, which has no file or command tools for them except those in [permissions] guest_allow.
owner: shares your thread, your memory and your workspace; the agent does for them everything that it does for you.
A name that anybody can take, such as a nick, proves nothing: write people by the id of their account (docs/channels.md).`,
      options: { role: text("<role>", "owner, user or guest", ["owner", "user", "guest"]) },
      examples: ["parley pairing approve ABCD-EFGH", "parley pairing approve ABCD-EFGH --role owner"],
    },
    async (gateway, { values, positionals, io }) => {
      const code = operand(positionals, "Name the code that the person received: parley pairing approve ABCD-EFGH");
      const role = values.text("role") ?? "user";
      if (role === "owner")
        note(
          io,
          "an owner shares your thread: they can read your messages, and the agent does for them everything that it does for you",
        );
      const answer = await gateway.run(api.approvePairing, { code, role }).catch((error: unknown) => {
        if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
        throw new CliError("No open request has this code: it is wrong, already used, or older than an hour.", {
          fix: "parley pairing list shows open requests; a person who writes again gets a new code.",
        });
      });
      const { channel, account, contactId, name } = answer.contact;
      const who = `${oneLine(name ?? contactId, 60)} (${contactId}) on ${channel}/${account}`;
      return { data: answer, text: () => `${who} is admitted as ${role}.` };
    },
  ),
];
