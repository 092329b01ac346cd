// Receives announcements of new utterances from speech servers: a configured notification, or an update of a subscribed resource.
// Publishes them only as hints; the leader then polls the server from its cursor.
import type { Bus, Served } from "@parley/bus";
import type { Client, Notification } from "@modelcontextprotocol/client";
import type { Logger } from "@parley/chassis";
import { voiceNews, type SttTool, type VoiceSettings } from "@parley/contracts";
import type { McpServers } from "./servers.ts";
import { VoiceSubscriptions } from "./voice-subscriptions.ts";
import { afterSaying, dueInMs, silent, withNews, type Throttle } from "./voice-throttle.ts";

/** Maximum lengths in characters; longer values are ignored. */
const longest = { sessionId: 500, uri: 2_000 };

/** The subject of a notification: a session, any session (null), or the sessions of a resource. */
type News = { session: string | null } | { uri: string };

/** Undefined for other notifications. Pure. */
export function newsIn({ method, params }: Notification, notify: string | undefined): News | undefined {
  if (method === notify) return { session: idIn(params) ?? null };
  const uri = params?.["uri"];
  const changed = method === "notifications/resources/updated" && typeof uri === "string" && uri.length <= longest.uri;
  return changed ? { uri } : undefined;
}

export interface VoicePushDeps {
  bus: Bus;
  log: Logger;
  /** This replica. */
  runner: string;
  servers: McpServers;
  settings: Pick<VoiceSettings, "tools" | "notify" | "resource">;
}

interface Listened {
  subscriptions: VoiceSubscriptions;
  throttle: Throttle;
  timer: NodeJS.Timeout | undefined;
}

/** Receives announcements until it is closed. */
export class VoicePush implements Served {
  readonly #deps: VoicePushDeps;
  readonly #listened = new Map<string, Listened>();

  constructor(deps: VoicePushDeps) {
    this.#deps = deps;
    deps.servers.onNotified = (server, notification) => this.#notified(server, notification);
    // Covers servers that connected earlier.
    for (const { plan } of deps.servers.all) this.#notified(plan.name, null);
  }

  /** Call after a tool of a session has returned a result over this connection. */
  asked(
    server: string,
    client: Client,
    tool: SttTool,
    args: Record<string, unknown>,
    value: Record<string, unknown>,
  ): void {
    const session = idIn(tool === "start" ? value : args);
    if (session === undefined) return;
    const { subscriptions } = this.#of(server);
    if (tool === "stop") subscriptions.forget(session);
    if (tool !== "start" && tool !== "updates") return;
    const named = value["resource_uri"];
    const uri = typeof named === "string" && named !== "" && named.length <= longest.uri ? named : undefined;
    subscriptions.follow(client, session, uri);
  }

  close(): void {
    this.#deps.servers.onNotified = () => undefined;
    for (const { timer } of this.#listened.values()) clearTimeout(timer);
    this.#listened.clear();
  }

  /** Null: just connected. Utterances since the last poll may not have been announced. */
  #notified(server: string, notification: Notification | null): void {
    const { servers, settings } = this.#deps;
    if (notification === null) {
      if (servers.server(server)?.tools.some(({ name }) => name === settings.tools.updates) === true)
        this.#tell(server, null);
      return;
    }
    const news = newsIn(notification, settings.notify);
    if (news === undefined) return;
    const session = "uri" in news ? this.#listened.get(server)?.subscriptions.sessionOf(news.uri) : news.session;
    if (session !== undefined) this.#tell(server, session);
  }

  #tell(server: string, session: string | null): void {
    const listened = this.#of(server);
    listened.throttle = withNews(listened.throttle, session);
    this.#say(server, listened);
  }

  /** Publishes the hint now, or when the throttle allows it. */
  #say(server: string, listened: Listened): void {
    const nowMs = performance.now();
    const dueMs = dueInMs(listened.throttle, nowMs);
    if (dueMs === null || listened.timer !== undefined) return;
    if (dueMs > 0) {
      listened.timer = setTimeout(() => {
        listened.timer = undefined;
        this.#say(server, listened);
      }, dueMs);
      return;
    }
    const { bus, runner } = this.#deps;
    bus.publish(voiceNews, { runner, server, sttSessionId: listened.throttle.waiting ?? null });
    listened.throttle = afterSaying(nowMs);
  }

  #of(server: string): Listened {
    const known = this.#listened.get(server);
    if (known !== undefined) return known;
    const { log, settings } = this.#deps;
    const subscribed = (session: string) => this.#tell(server, session);
    const refused = (problem: string) =>
      log.warn({ mcp: server, problem }, "speech server not subscribed: it is polled instead");
    const subscriptions = new VoiceSubscriptions({ template: settings.resource, subscribed, refused });
    const listened: Listened = { subscriptions, throttle: silent, timer: undefined };
    this.#listened.set(server, listened);
    return listened;
  }
}

/** The server's session id in a value, if valid. */
function idIn(value: Record<string, unknown> | undefined): string | undefined {
  const id = value?.["session_id"];
  if (typeof id !== "string" && typeof id !== "number") return undefined;
  const text = String(id);
  return text === "" || text.length > longest.sessionId ? undefined : text;
}
