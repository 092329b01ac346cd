// One connection to one MCP server: opens it in the server's protocol era, lists its tools and answers its requests. It lasts until
// either side ends it; it does not reconnect.
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import {
  Client,
  StreamableHTTPClientTransport,
  type CreateMessageRequestParams,
  type CreateMessageResult,
  type ElicitRequestParams,
  type ElicitResult,
  type OAuthClientProvider,
  type PriorDiscovery,
  type Tool as ServerTool,
  type Transport,
} from "@modelcontextprotocol/client";
import { boundedFetch, maxAnswerBytes } from "./bounded-fetch.ts";
import { errorText } from "./failures.ts";
import { namesIssuer } from "./oauth/provider.ts";
import type { McpServerConfig } from "./server-config.ts";
import { StdioTransport } from "./stdio-transport.ts";

export interface ConnectionDeps {
  version: string;
  /** Null when the server needs no authorization. */
  auth: OAuthClientProvider | null;
  /** The era that a previous connection discovered; undefined: discover it. */
  prior: PriorDiscovery | undefined;
  signal: AbortSignal;
  /** The server's list of tools has changed. */
  onTools(tools: readonly ServerTool[]): void;
  /** The server sent an elicitation; `signal` is aborted when it no longer waits. */
  onQuestion(params: ElicitRequestParams, signal: AbortSignal): Promise<ElicitResult>;
  /** The server requests sampling; only if its settings allow it. */
  onSample(params: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult>;
}

export interface Connection {
  readonly client: Client;
  /** The tools listed when the connection was opened. */
  readonly tools: readonly ServerTool[];
  /** The discovered era, for the next connection. */
  readonly prior: PriorDiscovery;
  /** Resolves with the reason when the connection ends. */
  readonly closed: Promise<string>;
  /** Ends the connection. The first reason counts. */
  close(reason: string): Promise<void>;
}

const pinned2026 = "2026-07-28";
/** A program that does not answer the era probe within this time is treated as legacy. */
const probeMs = 5_000;

/** Rejects when the server does not start in time; it has then ended. */
export async function openConnection(plan: McpServerConfig, deps: ConnectionDeps): Promise<Connection> {
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(plan.startTimeoutMs)]);
  try {
    return await attempt(plan, deps, signal, deps.prior);
  } catch (error) {
    // Some legacy programs exit on a first message other than `initialize`.
    if (plan.reach.kind !== "stdio" || plan.era !== "auto" || deps.prior !== undefined || signal.aborted) throw error;
    return attempt(plan, deps, signal, { kind: "legacy" });
  }
}

async function attempt(
  plan: McpServerConfig,
  deps: ConnectionDeps,
  signal: AbortSignal,
  prior: PriorDiscovery | undefined,
): Promise<Connection> {
  const { reach, startTimeoutMs: timeout } = plan;
  // No other response follows an aborted one: closing fails the pending requests immediately.
  const exceeded = () => void close(`it sent a response of more than ${maxAnswerBytes} bytes`);
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
      versionNegotiation: {
        mode: plan.era === "2026" ? { pin: pinned2026 } : plan.era,
        probe: { timeoutMs: Math.min(probeMs, timeout) },
      },
      listChanged: {
        tools: { onChanged: (error, tools) => (error === null && tools !== null ? deps.onTools(tools) : undefined) },
      },
    },
  );
  if (plan.roots.length > 0) {
    const roots = plan.roots.map((root) => ({ uri: pathToFileURL(root).href, name: basename(root) }));
    client.setRequestHandler("roots/list", () => ({ roots }));
  }
  if (plan.sampling !== null) {
    client.setRequestHandler("sampling/createMessage", ({ params }, { mcpReq }) =>
      deps.onSample(params, mcpReq.signal),
    );
  }
  client.setRequestHandler("elicitation/create", ({ params }, { mcpReq }) => deps.onQuestion(params, mcpReq.signal));
  const closed = Promise.withResolvers<string>();
  let reason: string | undefined;
  client.onclose = () => closed.resolve(reason ?? problemOf(transport) ?? "the connection was closed");
  // An invalid message does not end the connection; `onclose` reports the end.
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
    await close("it did not start");
    // A program that exits by itself has a reason only after its exit.
    const why = before ?? (late ? undefined : problemOf(transport));
    if (late && !deps.signal.aborted) {
      throw new Error(`it did not start within ${timeout / 1_000} s${why === undefined ? "" : `: ${why}`}`, {
        cause: error,
      });
    }
    throw why === undefined ? error : new Error(`${errorText(error)} (${why})`, { cause: error });
  }
}

function eraOf(client: Client): PriorDiscovery {
  const discover = client.getDiscoverResult();
  return discover === undefined ? { kind: "legacy" } : { kind: "modern", discover };
}

function problemOf(transport: Transport): string | undefined {
  return transport instanceof StdioTransport ? transport.problem : undefined;
}
