// The commands `parley tokens …` and `parley audit`: named tokens of the API, and who changed what.

import { apiScopes, ApiScopeSchema } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import { note, UsageError } from "../io/io.ts";
import { text } from "../io/options.ts";
import { auditTable, tokensTable } from "../tables/tokens.ts";
import { operand, request, type CommandSpec } from "./command.ts";

const scopesHelp = `Scopes:
talk: send messages to the agent as its owner, stop turns, upload files. No commands such as /mode, no approvals.
read: sessions, documents, people, settings and the state of the cluster.
approve: decide approvals.
admin: everything, also tokens and the audit log.`;

function scopesOf(given: readonly string[]) {
  const scopes = given.map((each) => ApiScopeSchema.safeParse(each));
  if (scopes.length === 0 || scopes.some(({ success }) => !success))
    throw new UsageError(`Name what the token may do: --scope ${apiScopes.join(", --scope ")}.`);
  return scopes.flatMap(({ data }) => (data === undefined ? [] : [data]));
}

const nameToken = "Name the token; `parley tokens list` shows them.";

export const tokenCommands: readonly CommandSpec[] = [
  request(
    {
      name: "tokens create",
      summary: "create a named token of the API and print it once",
      operands: ["<name>"],
      details: scopesHelp,
      options: {
        scope: text("<scope>", "talk, read, approve or admin; repeatable", apiScopes),
        days: text("<number>", "days until it expires; default: it does not expire"),
      },
      examples: ["parley tokens create ci --scope talk --days 90", "parley tokens create grafana --scope read"],
    },
    async (gateway, { values, positionals, io }) => {
      const name = operand(positionals, "Name the token.");
      const expiresInDays = values.number("days", "a number of days from 1 to 3650", { max: 3_650 });
      const input = { name, scopes: scopesOf(values.texts("scope")) };
      const data = await gateway.run(
        api.createToken,
        expiresInDays === undefined ? input : { ...input, expiresInDays },
      );
      note(io, "Keep it now: it is not shown again. Only its hash is stored.");
      return { data, text: () => data.token };
    },
  ),
  request(
    { name: "tokens list", summary: "list the named tokens of the API", examples: ["parley tokens list"] },
    async (gateway) => {
      const found = await gateway.run(api.tokens);
      return { data: found, text: (paint) => tokensTable(found.tokens, paint, Date.now()) };
    },
  ),
  request(
    {
      name: "tokens revoke",
      summary: "revoke a named token",
      operands: ["<name>"],
      details: "All gateways refuse it after 10 seconds at the latest.",
      examples: ["parley tokens revoke ci"],
    },
    async (gateway, { positionals }) => {
      const data = await gateway.run(api.revokeToken, { name: operand(positionals, nameToken) });
      return { data, text: () => (data.revoked ? "The token is revoked." : "No valid token has this name.") };
    },
  ),
  request(
    {
      name: "audit",
      summary: "show who changed permissions, people, documents, settings or tokens, or was refused",
      details:
        "An entry is written before the change; FAILED means that it had no effect. Entries are never changed or deleted.",
      options: {
        action: text("<prefix>", "only actions that begin with this, for example people or login"),
        limit: text("<number>", "entries to show; default: 100"),
      },
      examples: ["parley audit", "parley audit --action approvals --limit 20"],
    },
    async (gateway, { values }) => {
      const action = values.text("action");
      const limit = values.number("limit", "a number from 1 to 1000", { max: 1_000 });
      const found = await gateway.run(api.audit, {
        ...(action === undefined ? {} : { action }),
        ...(limit === undefined ? {} : { limit }),
      });
      return { data: found, text: (paint) => auditTable(found.entries, paint) };
    },
  ),
];
