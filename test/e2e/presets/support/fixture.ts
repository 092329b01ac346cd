// A cluster with one preset, as its users and operators see it: messages, events, and the log.
import { connectBus, type Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import {
  sessionEvent,
  store,
  textOf,
  type Message,
  type SessionEvent,
  type SessionSummary,
  type ToolResult,
  type TurnSummary,
} from "@parley/contracts";
import {
  apiClient,
  startTestCluster,
  type ApiClient,
  type Cleanup,
  type TestCluster,
  type TestClusterOptions,
} from "@parley/testing";

/** Milliseconds for events that happen immediately on an idle machine. */
const withinMs = 60_000;

interface Turn extends TurnSummary {
  messages: Message[];
  /** In the order of the log. */
  results: ToolResult[];
}

export interface ClusterFixture {
  cluster: TestCluster;
  client: ApiClient;
  /** A connection with the permissions of a gateway. */
  bus: Bus;
  /** All published events of sessions, in order, since the start. */
  readonly events: readonly SessionEvent[];
  /** The first event that matches; waits for it. */
  happens(fits: (event: SessionEvent) => boolean): Promise<SessionEvent>;
  /** Sends a message and waits for the end of its turn. */
  turn(text: string, conversation?: string): Promise<Turn>;
  /** The turn that a message has started; waits for it. */
  begun(messageId: string): Promise<string>;
  /** Stops the session's running turn. */
  stop(sessionId: string): Promise<void>;
  /** Sets the model of this session from its next call on; null: the agent's own model. */
  useModel(sessionId: string, model: string | null): Promise<void>;
  /** The turn of a message that was sent before; waits for its end, which `events` may contain later. */
  ended(messageId: string): Promise<Turn>;
  /** The events of a turn from its start to its end; waits for the end. */
  eventsOf(turnId: string): Promise<SessionEvent[]>;
  session(key: string): Promise<SessionSummary>;
  /** Sub-agents' sessions of a session; the last changed one first. */
  children(sessionId: string): Promise<SessionSummary[]>;
  /** The whole log of a session. */
  log(sessionId: string): Promise<Message[]>;
  /** Answers the question about a call of this turn; waits for the question. */
  answer(turnId: string, allow: boolean): Promise<void>;
  /** The last request to the fake model, as searchable text. */
  lastRequest(): ModelRequest;
}

interface ModelRequest {
  system: string;
  tools: string[];
  /** `user: …` and `assistant: …`, blocks in order; results as `result(<text>)`, calls as `call(<name> <json>)`. */
  messages: string[];
  maxTokens: number;
}

export interface ClusterFixtureOptions {
  /** Appended to `preset = "…"`. */
  settings?: string;
  replicas?: NonNullable<Parameters<typeof startTestCluster>[1]>["replicas"];
  /** A scripted model with Anthropic's wire format. Default: the rehearsal model. */
  model?: boolean;
  /** Environment of the gateway: secrets of its channels. */
  secrets?: Record<string, string>;
  /** See `startTestCluster`. */
  programs?: TestClusterOptions["programs"];
  /** See `startTestCluster`. */
  processes?: TestClusterOptions["processes"];
  /** Isolation of commands. Default `none`, with which every command has high risk. */
  isolation?: "none" | "container" | "auto";
}

/** `preset`: null = none. */
export async function startClusterFixture(
  cleanup: Cleanup,
  preset: string | null,
  options: ClusterFixtureOptions = {},
): Promise<ClusterFixture> {
  const cluster = await startTestCluster(cleanup, {
    settings: `${preset === null ? "" : `preset = "${preset}"\n`}${options.settings ?? ""}`,
    model: options.model === true,
    ...(options.replicas === undefined ? {} : { replicas: options.replicas }),
    programs: options.programs,
    processes: options.processes,
    env: {
      "tool-runner": { PARLEY_EXEC_ISOLATION: options.isolation ?? "none" },
      "channel-gateway": options.secrets ?? {},
    },
  });
  const bus = await connectBus({
    url: cluster.natsUrls["channel-gateway"],
    namespace: "parley",
    role: "channel-gateway",
    name: "test-presets",
    log: createLogger({ service: "test", replica: "test", level: "silent" }),
  });
  cleanup.add(() => bus.drain());
  const client = apiClient(cluster.httpUrls, cluster.token);
  const events: SessionEvent[] = [];
  const waiting = new Set<() => void>();
  bus.subscribe(sessionEvent, {}, (event) => {
    events.push(event);
    for (const look of waiting) look();
  });
  await bus.flush();

  const happens = (fits: (event: SessionEvent) => boolean) => {
    const { promise, resolve, reject } = Promise.withResolvers<SessionEvent>();
    const timer = setTimeout(() => reject(new Error("it did not happen")), withinMs);
    const look = () => {
      const event = events.find(fits);
      if (event === undefined) return;
      waiting.delete(look);
      clearTimeout(timer);
      resolve(event);
    };
    waiting.add(look);
    look();
    return promise;
  };
  const log = async (sessionId: string) => {
    const { messages } = await bus.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 1000 });
    return messages;
  };
  const ended = async (messageId: string): Promise<Turn> => {
    const summary = await client.settled(messageId, withinMs);
    const messages = (await log(summary.sessionId)).filter(({ turnId }) => turnId === summary.turnId);
    const results = messages.flatMap(({ parts }) => parts.filter((part) => part.type === "tool_result"));
    return { ...summary, messages, results };
  };
  return {
    cluster,
    client,
    bus,
    events,
    happens,
    ended,
    log,
    async eventsOf(turnId) {
      await happens((event) => event.type === "turn.finished" && event.turnId === turnId);
      return events.filter((event) =>
        event.type === "message" ? event.message.turnId === turnId : "turnId" in event && event.turnId === turnId,
      );
    },
    async begun(messageId) {
      const event = await happens((each) => each.type === "turn.started" && each.inboxIds.includes(messageId));
      return event.type === "turn.started" ? event.turnId : "";
    },
    async stop(sessionId) {
      const stopped = await client.fetch(`/api/sessions/${sessionId}/cancel`, { method: "POST", body: "{}" });
      if (stopped.status !== 200) throw new Error(`it could not be stopped: ${stopped.status}`);
    },
    async useModel(sessionId, model) {
      await bus.request(store.sessionUpdate, { sessionId, overrides: { model } });
    },
    turn: async (text, conversation = "test") => ended(await client.post(text, { conversation })),
    async session(key) {
      const { session } = await bus.request(store.sessionGet, { key });
      if (session === null) throw new Error(`there is no session ${key}`);
      return session;
    },
    async children(sessionId) {
      const { sessions } = await bus.request(store.sessionList, { limit: 200, parentId: sessionId });
      return sessions;
    },
    async answer(turnId, allow) {
      const asked = await happens((event) => event.type === "approval.requested" && event.turnId === turnId);
      if (asked.type !== "approval.requested") throw new Error("no question");
      await bus.request(store.approvalDecide, { id: asked.approvalId, allow, always: false, by: "test" });
    },
    lastRequest() {
      const request = cluster.strict?.requests.at(-1);
      if (request === undefined) throw new Error("the model was asked nothing");
      return {
        system: request.system.map(({ text }) => text).join("\n"),
        tools: request.tools.map(({ name }) => name),
        maxTokens: request.max_tokens,
        messages: request.messages.map(({ role, content }) => `${role}: ${content.map(blockText).join("")}`),
      };
    },
  };
}

function blockText(block: { type: string } & Record<string, unknown>): string {
  switch (block.type) {
    case "text":
      return String(block["text"]);
    case "tool_use":
      return `call(${String(block["name"])} ${JSON.stringify(block["input"])})`;
    case "tool_result":
      return `result(${typeof block["content"] === "string" ? block["content"] : JSON.stringify(block["content"])})`;
    default:
      return `${block.type}()`;
  }
}

/** The text of each message, without parts of other kinds. */
export function textsOf(messages: readonly Message[]): string[] {
  return messages.map(({ parts }) => textOf(parts));
}

export function rolesOf(messages: readonly Message[]): string {
  return messages.map(({ role }) => role).join(" ");
}

/** Instructions for a model that starts a sub-agent with a script of its own, by the tool's name in this preset. */
export function spawning(tool: string, input: Record<string, unknown>): string {
  return `tool: ${tool} ${JSON.stringify(input)}`;
}

/** A command that ends when the file exists. It does not move to the background on a busy machine. */
export function waitingFor(file: string): string {
  return `tool: exec ${JSON.stringify({ command: `until test -e ${file}; do sleep 0.02; done`, wait_seconds: 120 })}`;
}
