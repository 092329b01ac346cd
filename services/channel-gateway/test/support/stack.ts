// A gateway on a real NATS and a real store, with a minimal agent in place of agent-core.
import { start, type GatewayConfig, type GatewayOverrides } from "@parley/channel-gateway";
import type { RunningService } from "@parley/chassis";
import type { NatsServer } from "@parley/local";
import { Cleanup, startStoreStack, testBaseConfig, type StoreStack } from "@parley/testing";
import { sha256Hex } from "../../src/channels/digest.ts";
import { TestAgent } from "./agent.ts";

export const token = "test-token-0123456789";

export interface GatewayStack extends AsyncDisposable {
  stack: StoreStack;
  agent: TestAgent;
  /** Starts a replica; the stack closes it. */
  gateway(more?: GatewayMore): Promise<Replica>;
}

export interface GatewayMore {
  name?: string;
  config?: Partial<GatewayConfig>;
  http?: Partial<GatewayConfig["http"]>;
  overrides?: GatewayOverrides;
}

export interface Replica {
  service: RunningService;
  url: string;
  /** Drains the replica. Idempotent. */
  close(): Promise<void>;
  /** Sends a request with the token and, for objects, a JSON body. */
  call(
    path: string,
    options?: { body?: unknown; method?: string; headers?: Record<string, string> },
  ): Promise<Response>;
  json<T>(path: string, options?: { body?: unknown; method?: string; headers?: Record<string, string> }): Promise<T>;
}

export async function startGatewayStack(): Promise<GatewayStack> {
  const cleanup = new Cleanup();
  const stack = await startStoreStack(cleanup);
  const agent = await TestAgent.start(await stack.bus("agent-core"));
  cleanup.add(() => agent.close());
  return {
    stack,
    agent,
    gateway: (more) => startReplica(stack.nats, cleanup, more),
    [Symbol.asyncDispose]: () => cleanup[Symbol.asyncDispose](),
  };
}

let count = 0;

/** One gateway replica on a NATS server. */
export async function startReplica(nats: NatsServer, cleanup: Cleanup, more: GatewayMore = {}): Promise<Replica> {
  count++;
  const base = testBaseConfig(nats, "channel-gateway", {
    PARLEY_REPLICA: more.name ?? `channel-gateway-${count}`,
    PARLEY_LOG_LEVEL: process.env["PARLEY_LOG_LEVEL"] ?? "silent",
  });
  const service = await start(
    {
      ...base,
      // One turn per message by default; tests of other modes override it.
      settings: { ...base.settings, queue: { ...base.settings.queue, mode: "queue" } },
      http: {
        host: "127.0.0.1",
        port: 0,
        tokenHashes: [sha256Hex(token)],
        allowedOrigins: [],
        allowedHosts: [],
        ratePerMinute: 60_000,
        ...more.http,
      },
      channelSecrets: new Map(),
      originOf: () => "default",
      checkSettings: () => [],
      ...more.config,
    },
    more.overrides,
  );
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= service.close());
  cleanup.add(close);
  const url = `http://127.0.0.1:${service.httpPort ?? 0}`;
  const call: Replica["call"] = (path, { body, method, headers } = {}) =>
    fetch(`${url}${path}`, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  return {
    service,
    url,
    close,
    call,
    json: async <T>(path: string, options = {}) => (await (await call(path, options)).json()) as T,
  };
}
