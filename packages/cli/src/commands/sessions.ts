// The commands `parley sessions …`.

import { store, type SessionSummary } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { exitCodes, painter, print } from "../io/io.ts";
import { flag, jsonOption, targetOptions, text, type OptionTable } from "../io/options.ts";
import { oneLine } from "../tables/format.ts";
import { matchesText, messageText, sessionsTable } from "../tables/sessions.ts";
import { operand, request, sessionOrDefault, type CommandSpec, type Result, type Run } from "./command.ts";

const nameSession = "Name a session; parley sessions lists them.";
const route: OptionTable = {
  route: text("<key>", "the route that leads to it from now on; default: that of `parley chat`"),
};

function changed(what: string, answer: { readonly session: SessionSummary }): Result {
  const { sessionId, title } = answer.session;
  return { data: answer, text: () => `${what}: ${sessionId}${title === null ? "" : `  ${oneLine(title, 80)}`}` };
}

/** Prints the messages page by page. */
const showSession: Run = async ({ values, positionals, io }) => {
  const id = operand(positionals, nameSession);
  const gateway = new Gateway(findTarget(values, io));
  const paint = painter(io.stdout, io.env);
  for (let after = 0; ;) {
    const { messages, more } = await gateway.run(api.messages, { id, after, limit: 200 });
    for (const message of messages) {
      after = message.seq;
      const shown = values.has("json") ? JSON.stringify(message) : messageText(message, paint);
      if (shown !== "") print(io, shown);
    }
    if (!more || messages.length === 0) return exitCodes.ok;
  }
};

export const sessionCommands: readonly CommandSpec[] = [
  request(
    {
      name: "sessions",
      summary: "list all sessions, most recently used first",
      options: {
        archived: flag("archived sessions instead"),
        subagents: flag("include sessions of sub-agents"),
        calls: flag("include sessions of single calls: run, --once, API calls without a conversation"),
        text: text("<part>", "only sessions with this text in their title"),
        messages: flag("with --text: search messages too, by words"),
        channel: text("<channel>", "only sessions with messages from this channel"),
        person: text("<person>", "only sessions with messages of this person: their id, or part of their name"),
        activity: text("<state>", "running, waiting, queued or idle", store.sessionActivities),
      },
      examples: ["parley sessions", "parley sessions --text 'office lease' --messages --activity idle"],
    },
    async (gateway, { values }) => {
      const { sessions, matches } = await gateway.run(api.sessions, {
        limit: 200,
        status: values.has("archived") ? "archived" : undefined,
        subagents: values.has("subagents") ? true : undefined,
        calls: values.has("calls") ? true : undefined,
        text: values.text("text"),
        messages: values.has("messages") ? true : undefined,
        channel: values.text("channel"),
        person: values.text("person"),
        activity: values.text("activity"),
      });
      const data = { sessions, ...(matches === undefined ? {} : { matches }) };
      return {
        data,
        text: (paint, maxWidth) => sessionsTable(sessions, paint, maxWidth) + matchesText(matches ?? [], paint),
      };
    },
  ),
  {
    name: "sessions show",
    summary: "print the messages of one session; with --json, one per line",
    operands: ["<id or key>"],
    options: { ...targetOptions, ...jsonOption },
    examples: ["parley sessions show main", "parley sessions show main --json | tail -1"],
    run: showSession,
  },
  request(
    {
      name: "sessions new",
      summary: "start a new session; the previous one is kept",
      operands: ["[<title>]"],
      options: route,
      examples: ["parley sessions new 'tax return'", "parley sessions new --route http:default:cli"],
    },
    async (gateway, { values, positionals: [title] }) => {
      const input = { action: "new", route: await sessionOrDefault(values.text("route"), gateway), title };
      return changed("New", await gateway.run(api.openSession, input));
    },
  ),
  request(
    {
      name: "sessions resume",
      summary: "resume an earlier session",
      operands: ["<id, key or title>"],
      options: route,
      examples: ["parley sessions resume 'tax return'"],
    },
    async (gateway, { values, positionals }) => {
      const session = operand(positionals, nameSession);
      const input = { action: "resume", session, route: await sessionOrDefault(values.text("route"), gateway) };
      return changed("Resumed", await gateway.run(api.openSession, input));
    },
  ),
  request(
    {
      name: "sessions fork",
      summary: "copy a session and continue the copy separately",
      operands: ["<id or key>", "[<title>]"],
      options: { route: text("<key>", "the route that leads to the copy from now on; default: none") },
      examples: ["parley sessions fork main 'what if'"],
    },
    async (gateway, { values, positionals }) => {
      const session = operand(positionals, nameSession);
      const input = { action: "fork", session, title: positionals[1], route: values.text("route") };
      return changed("Copied to", await gateway.run(api.openSession, input));
    },
  ),
  request(
    {
      name: "sessions rename",
      summary: "set the title of a session",
      operands: ["<id or key>", "<title>"],
      examples: ["parley sessions rename main 'everything'"],
    },
    async (gateway, { positionals }) => {
      const id = operand(positionals, nameSession);
      const title = operand(positionals.slice(1), "Name a title: parley sessions rename <id> 'title'");
      return changed("Renamed", await gateway.run(api.updateSession, { id, title }));
    },
  ),
  request(
    {
      name: "sessions archive",
      summary: "archive a session",
      operands: ["<id or key>"],
      options: { undo: flag("make it active again") },
      examples: ["parley sessions archive http:default:run-1a2b3c4d"],
    },
    async (gateway, { values, positionals }) => {
      const id = operand(positionals, nameSession);
      const status = values.has("undo") ? "active" : "archived";
      const answer = await gateway.run(api.updateSession, { id, status });
      return changed(status === "active" ? "Active again" : "Archived", answer);
    },
  ),
];
