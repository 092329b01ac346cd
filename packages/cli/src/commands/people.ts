// The commands `parley people …`: who may write to the agent, beyond the lists of parley.toml.

import { contactRoles, exampleAddress } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";

import { api } from "../cluster/api.ts";
import { note, UsageError, type Io } from "../io/io.ts";
import { text, type OptionValues } from "../io/options.ts";
import { peopleLimitsTable, peopleTable } from "../tables/channels.ts";
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

/** The value of a limit: null for `default`; undefined: not given. Throws UsageError. */
function limitIn(values: OptionValues, name: string, isWhole: boolean): number | null | undefined {
  const given = values.text(name);
  if (given === undefined) return undefined;
  if (given === "default") return null;
  if ((isWhole ? /^\d{1,7}$/ : /^\d{1,6}(\.\d{1,6})?$/).test(given)) return Number(given);
  const what = isWhole ? "a whole number" : "an amount such as 0.50";
  throw new UsageError(`--${name}: "${given}" is not ${what}, 0 (no limit) or default (that of the role).`);
}

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
      name: "people limits",
      summary: "show the limits of people and what they have used today",
      details: `[people.limits] in parley.toml sets the limits of roles. People are listed with limits of their own, and when a limit
applied to a message of theirs today (UTC).`,
      examples: ["parley people limits"],
    },
    async (gateway) => {
      const data = await gateway.run(api.peopleLimits);
      return { data, text: (paint) => peopleLimitsTable(data, paint) };
    },
  ),
  request(
    {
      name: "people limit",
      summary: "change the limits of a person",
      operands,
      details: `Each value is a number, 0 (no limit) or default (the limit of their role). The next message is checked against it. A named
token of the API is "http:default" with its name: parley people limit http:default "token ci" --turns-per-day 100`,
      options: {
        "messages-per-minute": text("<n>", "messages within 60 seconds"),
        "turns-per-day": text("<n>", "turns of one day (UTC)"),
        "usd-per-day": text("<amount>", "US dollars of one day (UTC)"),
      },
      examples: [`parley people limit ${examplePerson} --messages-per-minute 10 --usd-per-day 0.50`],
    },
    async (gateway, { values, positionals, io }) => {
      const person = personOf(positionals);
      const change = {
        messagesPerMinute: limitIn(values, "messages-per-minute", true),
        turnsPerDay: limitIn(values, "turns-per-day", true),
        usdPerDay: limitIn(values, "usd-per-day", false),
      };
      if (Object.values(change).every((limit) => limit === undefined))
        throw new UsageError("Name a limit: --messages-per-minute, --turns-per-day or --usd-per-day.");
      const data = await gateway.run(api.limitPerson, { ...person, ...omitUndefined(change) });
      if (data.note !== null) note(io, data.note);
      const { messagesPerMinute, turnsPerDay, usdPerDay } = data.own;
      const own = Object.entries({
        "messages a minute": messagesPerMinute,
        "turns a day": turnsPerDay,
        "dollars a day": usdPerDay,
      })
        .map(([what, limit]) => `${what}: ${limit === null ? "that of the role" : limit === 0 ? "no limit" : limit}`)
        .join(", ");
      return { data, text: () => `Limits of ${person.contactId} on ${person.channel}:${person.account}: ${own}.` };
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
