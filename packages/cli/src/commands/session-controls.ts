// The commands for the turns of a session: queue, approvals, cost, model, compaction and checkpoints.

import { efforts, permissionModes } from "@parley/contracts";
import { pluralize } from "@parley/kit";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { CliError, exitCodes, noteIfSlow, UsageError } from "../io/io.ts";
import { flag, text, type OptionTable } from "../io/options.ts";
import { oneLine } from "../tables/format.ts";
import {
  approvalsTable,
  checkpointsTable,
  compactText,
  overridesText,
  queueTable,
  rulesTable,
  rewindText,
  totalCost,
  usageTable,
} from "../tables/sessions.ts";
import { traceText } from "../tables/trace.ts";
import { operand, request, sessionOption, sessionOrDefault, type CommandSpec, type Result } from "./command.ts";

/** Timeout for a compaction (a model call with retries) and a rewind (file by file). */
const longMs = 300_000;

const onlySession: OptionTable = { session: text("<id>", "only for this session") };

async function decide(gateway: Gateway, given: string, allow: boolean, always: boolean): Promise<Result> {
  const id = given.toUpperCase();
  const input = { id, decision: allow ? "allow" : "deny", always: always ? true : undefined };
  const decided = await gateway.run(api.decide, input);
  const { outcome, approval } = decided;
  const what = approval === null ? "" : ` ${approval.tool}: ${oneLine(approval.summary, 120)}`;
  const texts = {
    decided: `${allow ? "Allowed" : "Denied"}${always ? ", also for similar calls in this session" : ""}.${what}`,
    already: `It was already ${approval?.state ?? "answered"}.${what}`,
    expired: `It has expired: nobody answered in time, so the call was denied.${what}`,
    not_found: `There is no approval ${id}. parley approvals lists the pending ones.`,
  };
  return { data: decided, text: () => texts[outcome], code: outcome === "decided" ? exitCodes.ok : exitCodes.error };
}

/** Resolves a checkpoint by its id, by the end of its id as chats show it, or by its number in the list. Throws CliError if none matches. */
async function resolveCheckpointId(gateway: Gateway, session: string, named: string): Promise<string> {
  if (/^[0-9a-f-]{36}$/i.test(named)) return named;
  const { checkpoints } = await gateway.run(api.checkpoints, { id: session, limit: 200 });
  const ids = checkpoints.map((each) => each.checkpointId);
  const found = /^\d{1,3}$/.test(named) ? ids[Number(named) - 1] : ids.find((id) => id.endsWith(named.toLowerCase()));
  if (found !== undefined) return found;
  throw new CliError(`There is no checkpoint "${named}".`, { fix: "parley checkpoints lists them." });
}

export const turnCommands: readonly CommandSpec[] = [
  request(
    {
      name: "trace",
      summary: "show where the time of a turn went",
      operands: ["[<turn id>|last]"],
      details:
        "From the times in the store: waiting, model calls, tool calls, approvals, sent texts. Needs no collector. ≤: at most.",
      examples: ["parley trace", "parley trace 0198c0de-…", "parley trace last --json | jq '.spans[]'"],
    },
    async (gateway, { positionals: [id = "last"] }) => {
      const trace = await gateway.run(api.trace, { id });
      return { data: trace, text: (paint) => traceText(trace, Date.now(), paint) };
    },
  ),
  request(
    {
      name: "queue",
      summary: "list, cancel or edit queued messages",
      operands: ["[<id or key>] | --edit <id> <text>"],
      options: {
        cancel: text("<id>", "cancel this message"),
        edit: text("<id>", "replace the text of this message"),
      },
      examples: ["parley queue", "parley queue --cancel 0198c0de-…", "parley queue --edit 0198c0de-… 'the other file'"],
    },
    async (gateway, { values, positionals }) => {
      const [cancel, edit] = [values.text("cancel"), values.text("edit")];
      if (cancel !== undefined && edit !== undefined) throw new UsageError("Use either --cancel or --edit, not both.");
      const messageId = cancel ?? edit;
      if (messageId === undefined) {
        const queue = await gateway.run(api.queue, { id: await sessionOrDefault(positionals[0], gateway) });
        return { data: queue, text: (paint) => queueTable(queue.rows, queue.more, paint) };
      }
      if (edit !== undefined) operand(positionals, "Name the new text: parley queue --edit <id> 'text'");
      const { sessionId: id } = await gateway.run(api.message, { id: messageId });
      if (edit === undefined) await gateway.run(api.cancelQueued, { id, messageId });
      else await gateway.run(api.editQueued, { id, messageId, text: positionals[0] });
      return { data: { done: true }, text: () => (edit === undefined ? "Cancelled." : "Updated.") };
    },
  ),
  request(
    {
      name: "approvals",
      summary: "list tool calls that need approval; approve or deny them",
      options: {
        ...onlySession,
        all: flag("include decided ones"),
        approve: text("<id>", "approve this call once"),
        always: flag("with --approve: also similar calls in this session"),
        deny: text("<id>", "deny this call"),
      },
      examples: ["parley approvals", "parley approvals --approve AB12", "parley approvals --deny AB12"],
    },
    async (gateway, { values }) => {
      const [approve, deny] = [values.text("approve"), values.text("deny")];
      if (approve !== undefined && deny !== undefined)
        throw new UsageError("Use either --approve or --deny, not both.");
      if (values.has("always") && approve === undefined) throw new UsageError("--always needs --approve.");
      if (approve !== undefined) return decide(gateway, approve, true, values.has("always"));
      if (deny !== undefined) return decide(gateway, deny, false, false);
      const state = values.has("all") ? "all" : "pending";
      const found = await gateway.run(api.approvals, { limit: 100, state, session: values.text("session") });
      return { data: found, text: (paint) => approvalsTable(found.approvals, paint) };
    },
  ),
  request(
    {
      name: "rules",
      summary: "list, add or remove the permission rules of a session",
      options: {
        ...onlySession,
        allow: text("<rule>", "add a rule for calls that run without approval"),
        ask: text("<rule>", "add a rule for calls that require approval each time"),
        deny: text("<rule>", "add a rule for calls that never run"),
        remove: text("<rule>", "remove this rule, such as one that an approval for always added"),
      },
      details: "Without --session: the main session. The rules of parley.toml are listed and cannot be changed here.",
      examples: ["parley rules", "parley rules --deny 'exec(rm *)'", "parley rules --remove 'exec(git status)'"],
    },
    async (gateway, { values }) => {
      const id = await sessionOrDefault(values.text("session"), gateway);
      for (const list of ["allow", "ask", "deny"] as const) {
        const rules = values.texts(list);
        if (rules.length > 0) await gateway.run(api.addRules, { id, list, rules });
      }
      const removed = values.texts("remove");
      if (removed.length > 0) await gateway.run(api.removeRules, { id, rules: removed });
      const rules = await gateway.run(api.rules, { id });
      return { data: rules, text: (paint) => rulesTable(rules, paint) };
    },
  ),
  request(
    {
      name: "cost",
      summary: "show model usage and cost",
      details: "Calls of unknown price are counted separately, never as free.",
      options: { ...onlySession, days: text("<n>", "number of days (UTC), including today; default 7") },
      examples: ["parley cost", "parley cost --days 30 --json | jq .total"],
    },
    async (gateway, { values }) => {
      const days = values.number("days", "a number from 1 to 999", { max: 999 }) ?? 7;
      const { rows } = await gateway.run(api.usage, { days, session: values.text("session") });
      return { data: { rows, total: totalCost(rows) }, text: (paint) => usageTable(rows, paint) };
    },
  ),
  request(
    {
      name: "model",
      summary: "show or set the model, effort and permission mode of a session",
      operands: ["[<model>|default]"],
      details: "Values apply only to this session, from its next model call on; default resets them.",
      options: {
        ...sessionOption,
        effort: text("<effort>", "reasoning effort", [...efforts, "default"]),
        "permission-mode": text("<mode>", "what runs without approval", [...permissionModes, "default"]),
      },
      examples: ["parley model", "parley model claude-opus-4-5 --effort high", "parley model default"],
    },
    async (gateway, { values, positionals: [model] }) => {
      const id = await sessionOrDefault(values.text("session"), gateway);
      const given = { model, effort: values.text("effort"), permissionMode: values.text("permission-mode") };
      // A null override removes it.
      const overrides = Object.fromEntries(
        Object.entries(given).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, value === "default" ? null : value]],
        ),
      );
      const changes = Object.keys(overrides).length > 0;
      const found = await (changes
        ? gateway.run(api.updateSession, { id, overrides })
        : gateway.run(api.session, { id }));
      return { data: found, text: () => overridesText(found.session) };
    },
  ),
  request(
    {
      name: "compact",
      summary: "compact a session: replace older messages with a summary for the model",
      operands: ["[<id or key>]"],
      options: { keep: text("<what>", "what the summary must keep") },
      examples: ["parley compact", "parley compact main --keep 'all file names'"],
    },
    async (gateway, { values, positionals, io }) => {
      const id = await sessionOrDefault(positionals[0], gateway);
      const asked = gateway.run(api.compact, { id, instructions: values.text("keep") }, longMs);
      const compacted = await noteIfSlow(io, "The model writes the summary; this takes up to five minutes.", asked);
      return { data: compacted, text: () => compactText(compacted) };
    },
  ),
  request(
    {
      name: "checkpoints",
      summary: "list the file checkpoints of a session",
      operands: ["[<id or key>]"],
      examples: ["parley checkpoints"],
    },
    async (gateway, { positionals }) => {
      const id = await sessionOrDefault(positionals[0], gateway);
      const found = await gateway.run(api.checkpoints, { id, limit: 200 });
      return { data: found, text: (paint) => checkpointsTable(found.checkpoints, paint) };
    },
  ),
  request(
    {
      name: "rewind",
      summary: "restore files to a checkpoint",
      operands: ["<id or number>"],
      options: { ...sessionOption, "dry-run": flag("only print what would happen") },
      examples: ["parley rewind 1 --dry-run", "parley rewind 0198c0de-…"],
    },
    async (gateway, { values, positionals }) => {
      const named = operand(positionals, "Name a checkpoint; parley checkpoints lists them.");
      const id = await sessionOrDefault(values.text("session"), gateway);
      const input = { id, checkpointId: await resolveCheckpointId(gateway, id, named), dryRun: values.has("dry-run") };
      const report = await gateway.run(api.rewind, input, longMs);
      const code = report.counts.failed === 0 ? exitCodes.ok : exitCodes.error;
      return { data: report, text: (paint) => rewindText(report, paint), code };
    },
  ),
];

export const stopCommand = request(
  {
    name: "stop",
    summary: "stop the running turn of a session and cancel its queued messages",
    operands: ["[<id or key>]"],
    details: "The default session is that of `parley chat`.",
    options: { "keep-waiting": flag("keep queued messages") },
    examples: ["parley stop", "parley stop http:default:cli"],
  },
  async (gateway, { values, positionals }) => {
    const id = await sessionOrDefault(positionals[0], gateway);
    const stopped = await gateway.run(api.cancel, { id, queued: !values.has("keep-waiting") });
    const { turnId, cancelledQueued: count } = stopped;
    const queued = count === 0 ? "" : ` ${pluralize(count, "queued message")} cancelled.`;
    return { data: stopped, text: () => `${turnId === null ? "Nothing was running." : "Stopped."}${queued}` };
  },
);
