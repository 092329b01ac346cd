// One entry for each local tool: the facts that catalog.test.ts needs and that differ between tools.
import { randomUUID } from "node:crypto";
import { store, type ToolClass } from "@parley/contracts";
import type { LocalContext } from "../../src/tools/local-tool.ts";
import type { ToolContextFixture } from "./tool-context.ts";

type Args = Record<string, unknown>;

interface Ready {
  args: Args;
  /** Matches the result; undefined if the call leaves the turn waiting. */
  said?: RegExp;
  /** How often the call took effect, as seen by the other services; undefined for read-only tools. */
  effects?: () => Promise<number>;
}

interface LocalCase {
  class: ToolClass;
  /** Arguments of a call that succeeds in this context. */
  ready: (room: ToolContextFixture, context: LocalContext) => Promise<Ready>;
  /** Calls beyond the tool's limits, and the expected error. */
  limits: readonly { what: string; args: Args; said: RegExp }[];
}

const account = ({ turn }: LocalContext) => turn.replyTo?.account ?? "";
const linesWith = async ({ core }: ToolContextFixture, { turn }: LocalContext, path: string, text: string) => {
  const found = await core.request(store.memoryGet, { turnId: turn.turnId, path, from: 1, lines: 1_000 });
  return found.status === "found" ? found.lines.filter((line) => line.text.includes(text)).length : 0;
};
const put = ({ gateway }: ToolContextFixture, path: string, content: string) =>
  gateway.request(store.documentPut, { opId: randomUUID(), path, content, author: "owner" });
const looks = (args: Args, said: RegExp) => async () => ({ args, said });

export const cases: Readonly<Record<string, LocalCase>> = {
  agents_list: { class: "pure", ready: looks({}, /tools: /), limits: [] },
  ask_user: {
    class: "idempotent",
    ready: async (room, context) => ({
      args: { question: "Which one?", options: ["this", "that"] },
      effects: async () => (await room.outgoing(account(context))).length,
    }),
    limits: [
      { what: "four options", args: { question: "?", options: ["1", "2", "3", "4", "5"] }, said: /options: Too big/ },
      { what: "a question at all", args: {}, said: /`question` is missing/ },
    ],
  },
  cron: {
    class: "idempotent",
    ready: async ({ core }) => {
      const name = `walk-${randomUUID()}`;
      const effects = async () => {
        const { jobs } = await core.request(store.scheduleList, { all: true, limit: 100 });
        return jobs.filter((job) => job.name === name).length;
      };
      return { args: { action: "add", name, schedule: "every 1h", prompt: "look" }, said: /^Added\./, effects };
    },
    limits: [
      { what: "120 characters of a name", args: { action: "list", name: "x".repeat(121) }, said: /name: Too big/ },
      { what: "20,000 characters", args: { action: "add", prompt: "x".repeat(20_001) }, said: /prompt: Too big/ },
      { what: "a hundred jobs", args: { action: "list", limit: 101 }, said: /limit: Too big/ },
      { what: "a second", args: { action: "add", schedule: "every 0s", prompt: "x" }, said: /Failed: schedule: / },
    ],
  },
  exit_plan_mode: {
    class: "idempotent",
    ready: async ({ core }, context) => {
      context.policy.permissionMode = "plan";
      const { sessionId } = context.turn;
      await core.request(store.sessionUpdate, { sessionId, overrides: { permissionMode: "plan" } });
      const effects = async () => {
        const { session } = await core.request(store.sessionGet, { sessionId });
        return session?.overrides.permissionMode === undefined ? 1 : 0;
      };
      return {
        args: { plan: "Look, then write." },
        said: /^The plan is approved, and the permission mode is default\./,
        effects,
      };
    },
    limits: [{ what: "20,000 characters", args: { plan: "x".repeat(20_001) }, said: /plan: Too big/ }],
  },
  memory_forget: {
    class: "idempotent",
    ready: async (room, context) => {
      const path = `memory/${randomUUID()}.md`;
      await put(room, path, "keep this\nand drop this\nand drop that\n");
      const effects = async () => 2 - (await linesWith(room, context, path, "drop"));
      return { args: { path, lines: "2" }, said: /^Removed from .*\n> and drop this$/, effects };
    },
    limits: [
      { what: "notes", args: { path: "secret.txt", lines: "1" }, said: /memory\// },
      {
        what: "one of two arguments",
        args: { path: "MEMORY.md", lines: "1", text: "abc" },
        said: /either `lines` or `text`/,
      },
      { what: "three characters", args: { path: "MEMORY.md", text: "ab" }, said: /text: Too small/ },
    ],
  },
  memory_get: {
    class: "pure",
    ready: async (room) => {
      await put(room, "memory/walk-get.md", "one\ntwo\n");
      return { args: { path: "memory/walk-get.md", from: 2, lines: 1 }, said: /two/ };
    },
    limits: [
      { what: "2,000 lines", args: { path: "MEMORY.md", lines: 2_001 }, said: /lines: Too big/ },
      { what: "notes", args: { path: "../etc/passwd" }, said: /memory\// },
    ],
  },
  memory_search: {
    class: "pure",
    ready: async (room) => {
      await put(room, "memory/walk-search.md", "The walrus lives in Wuppertal.\n");
      return { args: { query: "walrus Wuppertal" }, said: /memory\/walk-search\.md/ };
    },
    limits: [
      { what: "fifty passages", args: { query: "x", max_results: 51 }, said: /max_results: Too big/ },
      { what: "a score of 1", args: { query: "x", min_score: 1.1 }, said: /min_score: Too big/ },
    ],
  },
  memory_write: {
    class: "idempotent",
    ready: async (room, context) => {
      const path = `memory/${randomUUID()}.md`;
      const effects = () => linesWith(room, context, path, "the heron eats at noon");
      return { args: { path, content: "the heron eats at noon" }, said: /^Written to /, effects };
    },
    limits: [
      { what: "notes", args: { content: "x", path: "notes.md" }, said: /memory\// },
      { what: "non-empty content", args: { content: "  " }, said: /content: Too small/ },
    ],
  },
  message: {
    class: "idempotent",
    ready: async (room, context) => ({
      args: { text: "on my way" },
      said: /^message sent to irc:/,
      effects: async () => (await room.outgoing(account(context))).length,
    }),
    limits: [
      { what: "non-empty text", args: { text: " " }, said: /Not sent: `text` is missing/ },
      {
        what: "an address",
        args: { text: "x", to: "bob" },
        said: /"bob", which is not of the form channel:account:conversation/,
      },
      {
        what: "a stored attachment",
        args: { text: "x", attachments: ["0".repeat(64)] },
        said: /there is no attachment 0000/,
      },
    ],
  },
  sessions_history: {
    class: "pure",
    ready: async (_, { turn }) => ({ args: { session_id: turn.sessionId }, said: /do it/ }),
    limits: [
      { what: "200 messages", args: { session_id: "x", limit: 201 }, said: /limit: Too big/ },
      { what: "an existing session", args: { session_id: randomUUID() }, said: /There is no session/ },
    ],
  },
  sessions_list: {
    class: "pure",
    ready: async (_, { turn }) => ({ args: {}, said: new RegExp(turn.sessionId) }),
    limits: [{ what: "a hundred", args: { limit: 101 }, said: /limit: Too big/ }],
  },
  sessions_send: {
    class: "idempotent",
    ready: async (room) => {
      const { turn: other } = await room.call("message", "idempotent");
      const effects = async () => {
        const { session } = await room.core.request(store.sessionGet, { sessionId: other.sessionId });
        return session?.queued ?? 0;
      };
      return { args: { session_id: other.sessionId, content: "look here" }, said: /^Sent to session/, effects };
    },
    limits: [
      { what: "an existing session", args: { session_id: randomUUID(), content: "x" }, said: /There is no session/ },
      { what: "non-empty content", args: { session_id: randomUUID(), content: "" }, said: /content: Too small/ },
    ],
  },
  sessions_spawn: {
    class: "idempotent",
    ready: async ({ core }, { turn }) => {
      const effects = async () => {
        const { sessions } = await core.request(store.sessionList, { limit: 50, parentId: turn.sessionId });
        return sessions.length;
      };
      return { args: { prompt: "count the files", mode: "wait" }, effects };
    },
    limits: [
      { what: "a task", args: { prompt: "" }, said: /the task is missing/ },
      {
        what: "an existing profile",
        args: { prompt: "x", profile: "wizard" },
        said: /there is no profile "wizard"/,
      },
    ],
  },
  sessions_status: { class: "pure", ready: looks({}, /tokens: .*\ncost: /), limits: [] },
  skill: {
    class: "pure",
    ready: looks({ name: "/tone" }, /^Skill tone \(skills\/tone\/SKILL\.md\)\n\nBe kind\.$/),
    limits: [{ what: "64 characters of a name", args: { name: "x".repeat(65) }, said: /name: Too big/ }],
  },
  sleep: { class: "pure", ready: looks({ reason: "done" }, /asleep/), limits: [] },
  speak: {
    class: "idempotent",
    ready: async (room, context) => ({
      args: { text: "on my way" },
      said: /^voice message sent to irc:/,
      effects: async () => (await room.outgoing(account(context))).length,
    }),
    limits: [
      { what: "non-empty text", args: { text: "" }, said: /text: Too small/ },
      {
        what: "the settings' length",
        args: { text: "x".repeat(100_000) },
        said: /has 100000 characters; the limit is/,
      },
      {
        what: "an address",
        args: { text: "x", to: "bob" },
        said: /"bob", which is not of the form channel:account:conversation/,
      },
    ],
  },
  subagents: { class: "pure", ready: looks({}, /has started no sub-agents/), limits: [] },
  todo: {
    class: "idempotent",
    ready: async ({ core }, { turn }) => {
      const effects = async () => {
        const { session } = await core.request(store.sessionGet, { sessionId: turn.sessionId });
        return session?.todos?.length ?? 0;
      };
      return { args: { todos: [{ content: "look", status: "pending" }] }, said: /^\[ \] look$/, effects };
    },
    limits: [
      {
        what: "500 characters",
        args: { todos: [{ content: "x".repeat(501), status: "pending" }] },
        said: /todos.0.content: Too big/,
      },
      {
        what: "a hundred items",
        args: { todos: Array.from({ length: 101 }, () => ({ content: "x", status: "pending" })) },
        said: /todos: Too big/,
      },
    ],
  },
};
