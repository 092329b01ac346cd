// The commands `parley people …`: who may write to the agent, beyond the lists of parley.toml.

import { contactRoles, exampleAddress } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import { note, UsageError, type Io } from "../io/io.ts";
import { text } from "../io/options.ts";
import { peopleTable } from "../tables/channels.ts";
import { oneLine } from "../tables/format.ts";
import { operand, request, type CommandSpec } from "./command.ts";

const [exampleChannel, exampleAccount, exampleId] = exampleAddress.split(":");
const examplePerson = `${exampleChannel}:${exampleAccount} ${exampleId}`;
const namePerson = "Name a person as <channel>:<account> <id>; `parley people list` shows them.";

function personOf([account, contactId]: readonly string[]) {
  const [channel = "", name = "", ...rest] = operand([account ?? ""], namePerson).split(":");
  if (channel === "" || name === "" || rest.length > 0) throw new UsageError(namePerson);
  return { channel, account: name, contactId: operand([contactId ?? ""], namePerson) };
}

const operands = ["<account>", "<id>"];

async function set(
  gateway: Parameters<Parameters<typeof request>[1]>[0],
  io: Io,
  person: ReturnType<typeof personOf>,
  role: string,
  effect: string,
) {
  const data = await gateway.run(api.setPerson, { ...person, role });
  if (data.note !== null) note(io, data.note);
  const { contactId, name, channel, account } = data.contact;
  return {
    data,
    text: () => `${oneLine(name ?? contactId, 60)} (${contactId}) on ${channel}:${account} is ${effect}.`,
  };
}

export const peopleCommands: readonly CommandSpec[] = [
  request(
    {
      name: "people list",
      summary: "list people who were admitted or blocked, or asked for access",
      details: "People in owners and allow_from of parley.toml are not listed: the file decides about them.",
      examples: ["parley people list"],
    },
    async (gateway) => {
      const found = await gateway.run(api.people);
      return { data: found, text: (paint) => peopleTable(found, paint) };
    },
  ),
  request(
    {
      name: "people allow",
      summary: "admit a person by their id, or change their role",
      operands,
      details: "parley pairing approve --help describes the roles.",
      options: { role: text("<role>", "owner, user or guest; default: user", contactRoles) },
      examples: [`parley people allow ${examplePerson}`, `parley people allow ${examplePerson} --role guest`],
    },
    async (gateway, { values, positionals, io }) => {
      const role = values.text("role") ?? "user";
      return set(gateway, io, personOf(positionals), role, `admitted as ${role}`);
    },
  ),
  request(
    {
      name: "people block",
      summary: "ignore everything from a person",
      operands,
      examples: [`parley people block ${examplePerson}`],
    },
    async (gateway, { positionals, io }) => set(gateway, io, personOf(positionals), "blocked", "blocked"),
  ),
  request(
    {
      name: "people remove",
      summary: "forget a person: they are unknown again and may ask for access",
      operands,
      examples: [`parley people remove ${examplePerson}`],
    },
    async (gateway, { positionals }) => {
      const data = await gateway.run(api.removePerson, personOf(positionals));
      return { data, text: () => (data.removed ? "The person is unknown again." : "The person was not known.") };
    },
  ),
  request(
    {
      name: "people link",
      summary: "link a second chat of a person to their conversation",
      operands: ["<code>", "<session>"],
      details: `The person writes to the agent from the second chat and receives a code. Then direct messages from there join the session,
with the role of --role. A person who is admitted links a chat themselves: they send /link <code> in the first one.`,
      options: { role: text("<role>", "owner, user or guest; default: user", contactRoles) },
      examples: [`parley people link ABCD-EFGH ${exampleAddress}`],
    },
    async (gateway, { values, positionals: [code, session] }) => {
      const usage = "Name the code and the session: parley people link ABCD-EFGH " + exampleAddress;
      const input = { code: operand([code ?? ""], usage), session: operand([session ?? ""], usage) };
      const data = await gateway.run(api.linkPerson, { ...input, role: values.text("role") ?? "user" });
      const { contactId, name, channel, account } = data.contact;
      return {
        data,
        text: () => `${oneLine(name ?? contactId, 60)} (${contactId}) on ${channel}:${account} is linked.`,
      };
    },
  ),
];
