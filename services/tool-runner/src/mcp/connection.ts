// One connection to one MCP server: opened in the right protocol era, its tools listed, its questions answered. It lives until the
// server or we end it; it does not come back by itself.
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import {
  Client,
  StreamableHTTPClientTransport,
  type CreateMessageRequestParams,
  type CreateMessageResult,
  type ElicitRequestParams,
  type ElicitResult,
  type Notification,
  type OAuthClientProvider,
  type PriorDiscovery,
  type Tool as ServerTool,
  type Transport,
} from "@modelcontextprotocol/client";
import { boundedFetch, maxAnswerBytes } from "./bounded-fetch.ts";
import { errorText } from "./errors.ts";
import { namesIssuer } from "./oauth/provider.ts";
import type { McpServerPlan } from "./plan.ts";
import { StdioTransport } from "./stdio-transport.ts";

export interface ConnectionDeps {
  version: string;
  /** Null where no person's or client's consent is needed. */
  auth: OAuthClientProvider | null;
  /** What a former connection found out about the era; undefined: ask. */
  prior: PriorDiscovery | undefined;
  signal: AbortSignal;
  /** The server's list has changed. */
  onTools(tools: readonly ServerTool[]): void;
  /** The server says something by itself that nothing else here is for. */
  onNotification(notification: Notification): void;
  /** The server asks a person something; `signal`: it does not wait any longer. */
  onQuestion(params: ElicitRequestParams, signal: AbortSignal): Promise<ElicitResult>;
  /** The server asks a model something; only where its settings let it. */
  onSample(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult>;
}

export interface Connection {
  readonly client: Client;
  /** As the server listed them when it was opened. */
  readonly tools: readonly ServerTool[];
  /** For the next connection. */
  readonly prior: PriorDiscovery;
  /** Resolves when it is over, with the reason. */
  readonly closed: Promise<string>;
  /** Ends it. The first reason counts. */
  close(reason: string): Promise<void>;
}

const pinned2026 = "2026-07-28";
/** How long a program may be silent when it is asked for its era: then it is an old one. */
const probeMs = 5_000;

/** Rejects when the server does not come up in time; nothing of it is left then. */
export async function openConnection(plan: McpServerPlan, deps: ConnectionDeps): Promise<Connection> {
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(plan.startTimeoutMs)]);
  try {
    return await attempt(plan, deps, signal, deps.prior);
  } catch (error) {
    // Some old programs end at the first message that is not `initialize`.
    if (plan.reach.kind !== "stdio" || plan.era !== "auto" || deps.prior !== undefined || signal.aborted) throw error;
    return attempt(plan, deps, signal, { kind: "legacy" });
  }
}

async function attempt(
  plan: McpServerPlan,
  deps: ConnectionDeps,
  signal: AbortSignal,
  prior: PriorDiscovery | undefined,
): Promise<Connection> {
  const { reach, startTimeoutMs: timeout } = plan;
  // What was cut off is answered by nothing else: whoever waits for it is told at once.
  const exceeded = () => void close(`it sent an answer of more than ${maxAnswerBytes} bytes`);
  const transport: Transport =
    reach.kind === "stdio"
      ? new StdioTransport(reach)
      : new StreamableHTTPClientTransport(reach.url, {
          requestInit: { headers: { ...reach.headers } },
          fetch: boundedFetch(maxAnswerBytes, exceeded),
          ...(deps.auth === null ? {} : { authProvider: deps.auth }),
          skipIssuerMetadataValidation: reach.oauth !== null && namesIssuer(reach.oauth),
        });
  const client = new Client(
    { name: "parley", version: deps.version },
    {
      capabilities: {
        elicitation: { form: { applyDefaults: true }, url: {} },
        ...(plan.roots.length === 0 ? {} : { roots: {} }),
        ...(plan.sampling === null ? {} : { sampling: {} }),
      },
      versionNegotiation: { mode: modeOf(plan), probe: { timeoutMs: Math.min(probeMs, timeout) } },
      listChanged: {
        tools: { onChanged: (error, tools) => (error === null && tools !== null ? deps.onTools(tools) : undefined) },
      },
    },
  );
  client.fallbackNotificationHandler = async (notification) => deps.onNotification(notification);
  answerQuestions(client, plan, deps);
  const closed = Promise.withResolvers<string>();
  let reason: string | undefined;
  client.onclose = () => closed.resolve(reason ?? problemOf(transport) ?? "the connection was closed");
  // What is wrong with a message does not end the connection; what ends it is told by `onclose`.
  client.onerror = () => undefined;
  const close = async (why: string) => {
    reason ??= why;
    await client.close().catch(() => undefined);
    await transport.close().catch(() => undefined);
    closed.resolve(reason);
  };
  try {
    await client.connect(transport, { timeout, signal, ...(prior === undefined ? {} : { prior }) });
    const { tools } =
      client.getServerCapabilities()?.tools === undefined
        ? { tools: [] }
        : await client.listTools({}, { timeout, signal });
    return { client, tools, prior: eraOf(client), closed: closed.promise, close };
  } catch (error) {
    const before = problemOf(transport);
    const late = signal.aborted;
    await close("it did not come up");
    // A program that ended by itself says why only when it is over.
    const why = before ?? (late ? undefined : problemOf(transport));
    if (late && !deps.signal.aborted) {
      throw new Error(`it did not come up within ${timeout / 1_000} seconds${why === undefined ? "" : `: ${why}`}`, {
        cause: error,
      });
    }
    throw why === undefined ? error : new Error(`${errorText(error)} (${why})`, { cause: error });
  }
}

function modeOf({ era }: McpServerPlan): "legacy" | "auto" | { pin: string } {
  return era === "2026" ? { pin: pinned2026 } : era;
}

function eraOf(client: Client): PriorDiscovery {
  const discover = client.getDiscoverResult();
  return discover === undefined ? { kind: "legacy" } : { kind: "modern", discover };
}

function problemOf(transport: Transport): string | undefined {
  return transport instanceof StdioTransport ? transport.problem : undefined;
}

/** Roots are told; questions to the person are passed on, and those to a model where the server may ask it. */
function answerQuestions(client: Client, { roots, sampling }: McpServerPlan, deps: ConnectionDeps): void {
  if (roots.length > 0) {
    client.setRequestHandler("roots/list", () => ({
      roots: roots.map((root) => ({ uri: pathToFileURL(root).href, name: basename(root) })),
    }));
  }
  if (sampling !== null) {
    client.setRequestHandler("sampling/createMessage", ({ params }, { mcpReq }) =>
      deps.onSample(params, mcpReq.signal),
    );
  }
  client.setRequestHandler("elicitation/create", ({ params }, { mcpReq }) => deps.onQuestion(params, mcpReq.signal));
}
