// Formats accounts of chat platforms and people for people. Pure.

import { pluralize } from "@parley/kit";

import { asTyped } from "../io/command-name.ts";
import type { Answer, api } from "../cluster/api.ts";
import type { Paint } from "../io/io.ts";
import { duration, listing, localTime, oneLine } from "./format.ts";
import { costText } from "./sessions.ts";

type Account = Answer<typeof api.channels>["accounts"][number];
type People = Answer<typeof api.people>;
type PeopleLimits = Answer<typeof api.peopleLimits>;

const colours = { connected: "green", listening: "green", failing: "red", disabled: "red" } as const;

function stateText({ state }: Account, paint: Paint): string {
  return state in colours ? paint(colours[state as keyof typeof colours], state) : state;
}

/** `3m ago`; `-` without a time. */
function ago(iso: string | null, now: number): string {
  return iso === null ? "-" : `${duration((now - Date.parse(iso)) / 1_000)} ago`;
}

function originText(origin: Account["origin"]): string {
  return origin === "file" ? "parley.toml" : "added";
}

export function accountsTable(accounts: readonly Account[], paint: Paint, now: number): string {
  if (accounts.length === 0)
    return asTyped(
      "There is no account. Add one with: parley channels add <channel>; docs/channels.md shows how to get its credentials.",
    );
  return listing(
    accounts,
    {
      ACCOUNT: ({ channel, account }) => `${channel}:${account}`,
      STATE: (each) => stateText(each, paint),
      SINCE: ({ since }) => ago(since, now),
      FROM: ({ origin }) => originText(origin),
      OWNER: ({ owner }) => owner?.split("/")[0] ?? "-",
      "LAST IN": ({ lastInAt }) => ago(lastInAt, now),
      "LAST OUT": ({ lastOutAt }) => ago(lastOutAt, now),
      WAITING: ({ waiting }) => waiting,
      UNKNOWN: ({ unknown }) => unknown,
      WHAT: ({ as, reason, lastError }) => oneLine(reason ?? as ?? lastError ?? "", 80),
    },
    paint,
  );
}

export function accountText(each: Account, paint: Paint, now: number): string {
  const {
    channel,
    account,
    origin,
    as,
    reason,
    since,
    owner,
    movedTo,
    paused,
    lastInAt,
    lastOutAt,
    waiting,
    unknown,
    lastError,
  } = each;
  const lines: [string, string | null][] = [
    ["account", `${channel}:${account}`],
    ["state", `${stateText(each, paint)}${as === null ? "" : ` as ${oneLine(as, 80)}`} (${ago(since, now)})`],
    ["from", originText(origin)],
    ["reason", reason === null ? null : oneLine(reason, 300)],
    ["paused", paused === null ? null : `by ${oneLine(paused.by, 80)} at ${localTime(paused.at)}`],
    ["owner", owner],
    ["moved to", movedTo],
    ["last in", ago(lastInAt, now)],
    ["last out", ago(lastOutAt, now)],
    ["waiting", String(waiting)],
    ["unknown", `${unknown} in the last 24 h`],
    ["last error", lastError === null ? null : oneLine(lastError, 300)],
  ];
  return lines.flatMap(([name, value]) => (value === null ? [] : [`${name.padEnd(11)}${value}`])).join("\n");
}

export function peopleTable({ contacts, pairings }: People, paint: Paint): string {
  const asking = pairings.map((each) => ({ ...each, role: "asks" }));
  const rows = [...asking, ...contacts];
  if (rows.length === 0) return "Nobody was admitted or blocked, and nobody asks for access.";
  const list = listing(
    rows,
    {
      ACCOUNT: ({ channel, account }) => `${channel}:${account}`,
      ROLE: ({ role }) => role,
      PERSON: ({ contactId }) => oneLine(contactId, 40),
      NAME: ({ name }) => (name === null ? "-" : oneLine(name, 40)),
    },
    paint,
  );
  return asking.length === 0
    ? list
    : `${list}\n\n${asTyped("Ask the person for their code, then run: parley pairing approve <code>")}`;
}

const limitText = (limit: number | null) => (limit === null ? "-" : limit === 0 ? "none" : String(limit));

/** The limits of roles, then people with limits of their own (`-`: that of the role) and what they have used today. */
export function peopleLimitsTable({ roles, people }: PeopleLimits, paint: Paint): string {
  const limits = {
    "A MINUTE": ({ messagesPerMinute }: Limits) => limitText(messagesPerMinute),
    "TURNS A DAY": ({ turnsPerDay }: Limits) => limitText(turnsPerDay),
    "$ A DAY": ({ usdPerDay }: Limits) => limitText(usdPerDay),
  };
  const byRole = Object.entries(roles).map(([role, each]) => ({ role, ...each }));
  const ofRoles = listing(byRole, { ROLE: ({ role }) => role, ...limits }, paint);
  if (people.length === 0) return `${ofRoles}\n\nNobody has limits of their own, and nobody was limited today.`;
  const ofPeople = listing(
    people.map(({ own, ...each }) => ({ ...own, ...each })),
    {
      ACCOUNT: ({ channel, account }) => `${channel}:${account}`,
      PERSON: ({ contactId }) => oneLine(contactId, 40),
      NAME: ({ name }) => (name === null ? "-" : oneLine(name, 40)),
      ...limits,
      TODAY: ({ today }) => `${pluralize(today.messages, "message")}, ${pluralize(today.turns, "turn")}`,
      COST: ({ today }) => costText({ micros: Math.round(today.usd * 1_000_000), unpricedCalls: today.unpricedCalls }),
      REFUSED: ({ today }) => today.refused,
    },
    paint,
  );
  return `${ofRoles}\n\n${ofPeople}`;
}

type Limits = PeopleLimits["people"][number]["own"];
