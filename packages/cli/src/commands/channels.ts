// The commands `parley channels …`: the accounts of chat platforms.

import { exampleAddress } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { CliError, UsageError } from "../io/io.ts";
import { targetOptions } from "../io/options.ts";
import { printAccountLines } from "../logs/account-lines.ts";
import { logOptions, printLogs } from "../logs/logs.ts";
import { accountText, accountsTable } from "../tables/channels.ts";
import { addChannelCommand } from "./add-channel.ts";
import { operand, request, type CommandSpec } from "./command.ts";

const exampleAccount = exampleAddress.split(":").slice(0, 2).join(":");
const nameAccount = "Name an account as <channel>:<account>; `parley channels list` shows them.";

function accountOf(positionals: readonly string[]): { channel: string; account: string } {
  const [channel = "", account = "", ...rest] = operand(positionals, nameAccount).split(":");
  if (channel === "" || account === "" || rest.length > 0) throw new UsageError(nameAccount);
  return { channel, account };
}

function change(action: "pause" | "resume", spec: Pick<CommandSpec, "summary" | "details" | "examples">): CommandSpec {
  const route = action === "pause" ? api.pauseChannel : api.resumeChannel;
  return request({ name: `channels ${action}`, operands: ["<account>"], ...spec }, async (gateway, { positionals }) => {
    const { channel, account } = accountOf(positionals);
    const data = await gateway.run(route, { channel, account });
    return { data, text: () => `${channel}:${account} is ${action === "pause" ? "paused" : "not paused any more"}.` };
  });
}

async function statusOf(gateway: Gateway, of: { channel: string; account: string }) {
  const { accounts } = await gateway.run(api.channels);
  const found = accounts.find(({ channel, account }) => channel === of.channel && account === of.account);
  if (found !== undefined) return found;
  throw new CliError(`There is no account ${of.channel}:${of.account}.`, { fix: nameAccount });
}

export const channelCommands: readonly CommandSpec[] = [
  request(
    {
      name: "channels list",
      summary: "list the accounts of chat platforms with their state",
      details:
        "Accounts are in parley.toml, [channels.<channel>.<account>], or were added with parley channels add; docs/channels.md shows how.",
      examples: ["parley channels list", "parley channels list --json | jq '.accounts[] | select(.waiting > 0)'"],
    },
    async (gateway) => {
      const found = await gateway.run(api.channels);
      return { data: found, text: (paint) => accountsTable(found.accounts, paint, Date.now()) };
    },
  ),
  request(
    {
      name: "channels status",
      summary: "show one account: owner, last messages, waiting texts, errors",
      operands: ["<account>"],
      examples: [`parley channels status ${exampleAccount}`],
    },
    async (gateway, { positionals }) => {
      const found = await statusOf(gateway, accountOf(positionals));
      return { data: found, text: (paint) => accountText(found, paint, Date.now()) };
    },
  ),
  request(
    {
      name: "channels test",
      summary: "check the credentials of an account with its platform",
      operands: ["<account>"],
      examples: [`parley channels test ${exampleAccount}`],
    },
    async (gateway, { positionals }) => {
      const { channel, account } = accountOf(positionals);
      const data = await gateway.run(api.testChannel, { channel, account });
      return { data, text: (paint) => paint(data.ok ? "green" : "red", data.text), code: data.ok ? 0 : 1 };
    },
  ),
  addChannelCommand,
  request(
    {
      name: "channels remove",
      summary: "remove an account that was added, with its secrets and waiting texts",
      operands: ["<account>"],
      details: "An account in parley.toml is removed there.",
      examples: [`parley channels remove ${exampleAccount}`],
    },
    async (gateway, { positionals }) => {
      const { channel, account } = accountOf(positionals);
      const data = await gateway.run(api.removeChannel, { channel, account });
      return { data, text: () => `${channel}:${account} is removed.` };
    },
  ),
  {
    name: "channels logs",
    summary: "print what the gateways logged about an account",
    operands: ["<account>"],
    options: { ...targetOptions, ...logOptions },
    details:
      "On this machine: from the log files of the cluster. With --url or PARLEY_URL: the last 200 lines that each running gateway keeps.",
    examples: [`parley channels logs ${exampleAccount}`, `parley channels logs ${exampleAccount} -f --level warn`],
    run: ({ values, positionals, io }) => {
      const account = accountOf(positionals);
      const target = findTarget(values, io);
      if (target.explicitUrl) return printAccountLines(values, io, new Gateway(target), account);
      return printLogs(values, io, account);
    },
  },
  request(
    {
      name: "channels move",
      summary: "hand the connection of an account over to a gateway",
      operands: ["<account>", "[<replica>]"],
      details:
        "The gateway keeps the connection while it is alive; parley status shows the names of the replicas. Without a name the gateways choose again.",
      examples: [`parley channels move ${exampleAccount} gateway-2`, `parley channels move ${exampleAccount}`],
    },
    async (gateway, { positionals }) => {
      const [name, replica = null] = positionals;
      const account = accountOf(name === undefined ? [] : [name]);
      const data = await gateway.run(api.moveChannel, { ...account, replica });
      const from = data.owner === null ? "" : ` from ${data.owner.split("/", 1)[0]}`;
      const what = `${account.channel}:${account.account}`;
      const to = data.movedTo === null ? "The gateways choose again" : `${what} moves${from} to ${data.movedTo}`;
      return { data, text: () => `${to}; parley channels status ${what} shows where it is.` };
    },
  ),
  change("pause", {
    summary: "stop receiving and sending on an account",
    details:
      "It stays paused on all replicas, also after restarts, until you resume it. Texts to send wait until they expire.",
    examples: [`parley channels pause ${exampleAccount}`],
  }),
  change("resume", {
    summary: "end the pause of an account",
    examples: [`parley channels resume ${exampleAccount}`],
  }),
];
