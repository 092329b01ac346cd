// Parley's own tools for other agents and programs that speak MCP: say something, read sessions, answer approvals. Whoever holds the
// token is the owner, as everywhere in this API.
import { store, textOf } from "@parley/contracts";
import { McpServer, type CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import { readSpoken } from "../../commands/spoken.ts";
import { version } from "../../version.ts";
import { apiInput } from "../api-input.ts";
import type { HttpDeps } from "../deps.ts";
import { HttpError, toHttpError } from "../errors.ts";

/** Clients of MCP give up after 60 s when they are not told otherwise. */
const waitSeconds = 50;
const maxListed = 100;

const readOnly = { readOnlyHint: true, openWorldHint: false };

/** A server for one request. `signal` aborts when the caller goes away or this replica drains. */
export function parleyServer(deps: HttpDeps, signal: AbortSignal): McpServer {
  const server = new McpServer(
    { name: "parley", version },
    {
      instructions:
        "Parley is an agent that is always on. send_message says something to it; list_sessions and read_session show its conversations; approvals_list and approval_decide answer what it asks before it acts.",
    },
  );
  sendMessage(server, deps, signal);
  sessions(server, deps);
  approvals(server, deps);
  return server;
}

function sendMessage(server: McpServer, deps: HttpDeps, signal: AbortSignal): void {
  server.registerTool(
    "send_message",
    {
      title: "Send a message to Parley",
      description:
        "Say something to the agent, as its owner. With `wait` it is a turn of its own and its answer comes back; when that takes longer, the message stays kept, and read_session shows the answer later. A text that is a command (/help lists them) is carried out at once.",
      inputSchema: z.strictObject({
        text: z.string().min(1).describe("What to say."),
        conversation: z.string().min(1).max(512).default("mcp").describe("Names the conversation it belongs to."),
        wait: z.boolean().default(true).describe("Wait for the answer."),
        wait_seconds: z.number().int().min(1).max(600).default(waitSeconds).describe("How long to wait at most."),
        key: z.string().min(1).max(256).optional().describe("The same key again is the same message."),
      }),
      annotations: { destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    ({ text, conversation, wait, wait_seconds: seconds, key }) =>
      answer(deps, async () => {
        const { inbound, events } = deps;
        const input = apiInput(conversation, text, key);
        const spoken = readSpoken(text);
        if (spoken.kind === "command") {
          events.inbound(input.channel, "command");
          return {
            command: spoken.command.name,
            text: await inbound.carryOut(spoken.command, inbound.speakerOf(input)),
          };
        }
        const said = { ...input, text: spoken.text, mode: spoken.mode, exclusive: wait };
        if (!wait) {
          const { inboxId, sessionId, duplicate } = await inbound.keep(said);
          return { message: inboxId, session: sessionId, duplicate };
        }
        const late = AbortSignal.timeout(seconds * 1_000);
        const { kept, end } = await inbound.keepAndFollow(said, AbortSignal.any([signal, late]));
        const ids = { message: kept.inboxId, session: kept.sessionId, duplicate: kept.duplicate };
        try {
          const { state, exitReason, text: answered } = await end;
          return { ...ids, state, exit_reason: exitReason, text: answered };
        } catch (error) {
          if (!late.aborted) throw error;
          return {
            ...ids,
            state: "running",
            text: `No answer within ${seconds} seconds: it is still being worked on.`,
          };
        }
      }),
  );
}

function sessions(server: McpServer, deps: HttpDeps): void {
  server.registerTool(
    "list_sessions",
    {
      title: "List Parley's sessions",
      description: "The agent's conversations, most recently used first.",
      inputSchema: z.strictObject({
        limit: z.number().int().min(1).max(maxListed).default(20),
        text: z.string().min(1).max(200).optional().describe("Part of the title."),
      }),
      annotations: readOnly,
    },
    ({ limit, text }) =>
      answer(deps, () => deps.bus.request(store.sessionList, { limit, ...(text === undefined ? {} : { text }) })),
  );
  server.registerTool(
    "read_session",
    {
      title: "Read a session of Parley",
      description: "What was said in a session after a position, in order. `next` is the position to go on from.",
      inputSchema: z.strictObject({
        session: z.string().min(1).max(600).describe("Its id or key, as list_sessions shows it."),
        after: z.number().int().min(0).default(0).describe("Position; 0 = from the beginning."),
        limit: z.number().int().min(1).max(maxListed).default(50),
      }),
      annotations: readOnly,
    },
    ({ session: idOrKey, after, limit }) =>
      answer(deps, async () => {
        const session = await deps.sessions.find(idOrKey);
        if (session === null) throw new HttpError(404, "not_found", `there is no session "${idOrKey}"`);
        const { sessionId } = session;
        const { messages, more } = await deps.bus.request(store.sessionMessages, { sessionId, afterSeq: after, limit });
        return {
          session: sessionId,
          messages: messages.map((message) => ({
            seq: message.seq,
            role: message.role,
            at: message.createdAt,
            text: textOf(message.parts),
            calls: message.parts.flatMap((part) => (part.type === "tool_call" ? [part.name] : [])),
          })),
          next: messages.at(-1)?.seq ?? after,
          more,
        };
      }),
  );
}

function approvals(server: McpServer, deps: HttpDeps): void {
  server.registerTool(
    "approvals_list",
    {
      title: "List what Parley asks",
      description: "Tool calls that wait for a person's yes or no, newest first.",
      inputSchema: z.strictObject({
        pending: z.boolean().default(true).describe("Only those that wait; false: those that are over, too."),
        limit: z.number().int().min(1).max(maxListed).default(20),
      }),
      annotations: readOnly,
    },
    (input) => answer(deps, () => deps.bus.request(store.approvalList, input)),
  );
  server.registerTool(
    "approval_get",
    {
      title: "Show one call that Parley asks about",
      description:
        "One question with its whole text and the full arguments of the call, where approvals_list hides characters.",
      inputSchema: z.strictObject({ id: z.string().min(1).max(12).describe("As approvals_list shows it.") }),
      annotations: readOnly,
    },
    ({ id }) =>
      answer(deps, async () => {
        const found = await deps.bus.request(store.approvalGet, { id });
        if (found.approval === null) throw new HttpError(404, "not_found", `there is no question ${id}`);
        return found;
      }),
  );
  server.registerTool(
    "approval_decide",
    {
      title: "Answer what Parley asks",
      description: "Allow or deny one waiting tool call. The first answer counts.",
      inputSchema: z.strictObject({
        id: z.string().min(1).max(12).describe("As approvals_list shows it."),
        allow: z.boolean(),
        always: z.boolean().default(false).describe("Also allow calls like it in this session from now on."),
      }),
      annotations: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    ({ id, allow, always }) =>
      answer(deps, async () => {
        const decision = { id: id.toUpperCase(), allow, always: allow && always, by: "owner (mcp)" };
        const decided = await deps.bus.request(store.approvalDecide, decision);
        if (decided.outcome === "not_found")
          throw new HttpError(404, "not_found", `there is no question ${decision.id}`);
        return decided;
      }),
  );
}

/** The value as text and as structure; an error as one that names itself and shows nothing of the inside. */
async function answer({ log }: Pick<HttpDeps, "log">, act: () => Promise<object>): Promise<CallToolResult> {
  try {
    const value = await act();
    return { content: [{ type: "text", text: JSON.stringify(value, null, 2) }], structuredContent: { ...value } };
  } catch (error) {
    const { code, message } = toHttpError(error);
    if (code === "internal") log.error({ err: error }, "an MCP call failed");
    return { content: [{ type: "text", text: `${code}: ${message}` }], isError: true };
  }
}
