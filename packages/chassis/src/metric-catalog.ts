// All metrics of Parley: names, meaning, labels and where they come from. `npm run docs` writes docs/metrics.md from it. Units are in
// the names. A label has a closed set of values, or values from configuration and code ("named"), whose number is limited.

import type { ServiceName } from "@parley/contracts";

export interface MetricDefinition {
  kind: "counter" | "gauge" | "histogram";
  help: string;
  /** Empty: all services. */
  services: readonly ServiceName[];
  labels: Readonly<Record<string, "named" | readonly string[]>>;
  /** Upper bounds, for histograms. */
  buckets: readonly number[];
}

type Labels = MetricDefinition["labels"];

type NoLabels = Readonly<Record<string, never>>;

type Defined<K, L> = Omit<MetricDefinition, "kind" | "labels"> & { kind: K; labels: L };

interface Define<K extends MetricDefinition["kind"]> {
  (services: readonly ServiceName[], help: string): Defined<K, NoLabels>;
  <const L extends Labels>(
    services: readonly ServiceName[],
    help: string,
    labels: L,
    buckets?: readonly number[],
  ): Defined<K, L>;
}

const define = <K extends MetricDefinition["kind"]>(kind: K): Define<K> =>
  ((services: readonly ServiceName[], help: string, labels: Labels = {}, buckets: readonly number[] = []) => ({
    kind,
    help,
    services,
    labels,
    buckets,
  })) as Define<K>;

const counter = define("counter");
const gauge = define("gauge");
const histogram = define("histogram");

const agent = ["agent-core"] as const;
const gateway = ["channel-gateway"] as const;
const runner = ["tool-runner"] as const;
const store = ["store"] as const;

/** Seconds of requests between services and to PostgreSQL. */
const fast = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
/** Seconds of turns, model calls and tools. */
const slow = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800];

const noLabels: NoLabels = {};

/** The causes of failed model calls; agent-core's `ModelFailure`. */
const modelOutcomes = [
  "ok",
  "cancelled",
  "rate_limit",
  "overloaded",
  "server",
  "connection",
  "stalled",
  "auth",
  "spend_limit",
  "context_overflow",
  "unknown_model",
  "invalid",
] as const;

export const metricCatalog = {
  // All services
  parley_build_info: gauge([], "Always 1; the labels name the version", { version: "named" }),
  parley_start_waiting: gauge(
    [],
    "1 while the service waits for a server or a folder that it cannot work without, else 0",
  ),
  parley_bad_payloads_total: counter([], "Bus payloads that did not match their contract", { subject: "named" }),
  parley_bus_connected: gauge([], "1 while NATS can be reached, else 0"),
  parley_bus_reconnects_total: counter([], "Reconnections to NATS"),
  parley_bus_requests_total: counter([], "Requests sent over the bus by outcome", {
    outcome: ["ok", "refused", "timeout", "unavailable", "cancelled"],
  }),
  parley_bus_request_seconds: histogram([], "Duration of requests over the bus, with retries", noLabels, fast),
  parley_bus_lost_total: counter([], "Hints and live events that were not published because NATS was unreachable", {
    kind: ["hint", "live"],
  }),
  parley_certificate_expiry_timestamp_seconds: gauge([], "When the first certificate of a link's files expires", {
    link: ["nats", "redis", "postgres"],
  }),

  // Leadership and turns
  parley_leader: gauge(agent, "1 while this replica leads, else 0"),
  parley_epoch: gauge(agent, "Epoch of this replica's leadership; 0 for a standby"),
  parley_lease_age_seconds: gauge(agent, "Time since the leader last renewed its lock; 0 for a standby"),
  parley_takeovers_total: counter(agent, "Leaderships that this process acquired"),
  parley_redis_connected: gauge(agent, "1 while this replica is connected to Redis, else 0"),
  parley_queue_jobs: gauge(agent, "Wake-ups in the queue of the leader by state", {
    state: ["waiting", "prioritized", "delayed", "active", "failed"],
  }),
  parley_sessions_active: gauge(agent, "Sessions that the leader is working on"),
  parley_turns_total: counter(agent, "Ended turns by outcome", { outcome: ["done", "failed", "cancelled", "dead"] }),
  parley_turn_first_text_seconds: histogram(
    agent,
    "From a turn's first message to the first text of the model",
    noLabels,
    slow,
  ),
  parley_turn_seconds: histogram(agent, "From a turn's first message to its end", noLabels, slow),
  parley_model_calls_total: counter(agent, "Attempts to call a model by outcome", {
    provider: ["anthropic", "openai", "rehearsal", "other"],
    model: "named",
    outcome: modelOutcomes,
  }),
  parley_model_call_seconds: histogram(agent, "Duration of attempts to call a model", { provider: "named" }, slow),
  parley_model_retries_total: counter(agent, "Model calls that were repeated after a failure"),
  parley_model_tokens_total: counter(agent, "Tokens by model and kind", {
    model: "named",
    kind: ["input", "output", "cache_read", "cache_write"],
  }),
  parley_model_cost_usd_total: counter(agent, "Cost of model calls with a known price", { model: "named" }),
  parley_cost_today_usd: gauge(agent, "Cost of the day (UTC) as the leader counts it"),
  parley_cost_limit_usd: gauge(agent, "The configured limit of a day; 0: none"),
  parley_prompt_prefix_breaks_total: counter(agent, "Prompts that did not continue the previous one"),
  parley_permission_evaluations_total: counter(
    agent,
    "Evaluations of the permission rules for a tool call, by decision",
    {
      decision: ["allow", "deny", "ask"],
    },
  ),
  parley_hook_runs_total: counter(agent, "Hook runs by outcome", { hook: "named", outcome: "named" }),
  parley_schedule_due_total: counter(agent, "Due times of jobs, by outcome", {
    outcome: ["fired", "skipped", "missed", "failed"],
  }),
  parley_memory_consolidations_total: counter(agent, "Model calls to consolidate memory, by outcome", {
    outcome: "named",
  }),

  // The whole cluster, measured by one store replica
  parley_inbox_rows: gauge(store, "Input by state; dead: ended after too many attempts", {
    state: ["queued", "claimed", "dead"],
  }),
  parley_inbox_oldest_seconds: gauge(
    store,
    "Age of the oldest input that nobody works on; session: behind a running turn",
    {
      behind: ["leader", "session"],
    },
  ),
  parley_outbox_rows: gauge(store, "Texts to send by state; unknown: may or may not have arrived", {
    state: ["pending", "sending", "unknown"],
  }),
  parley_outbox_oldest_seconds: gauge(store, "Age of the oldest text that is due and not sent"),
  parley_turns_open: gauge(store, "Turns by state; parked: waiting for a person, a time or a sub-agent", {
    state: ["running", "parked"],
  }),
  parley_waiting: gauge(store, "What waits for a person or a tool-runner", { for: ["approval", "question", "tool"] }),
  parley_schema_version: gauge(store, "Number of the newest applied migration"),
  parley_cluster_measured_timestamp_seconds: gauge(store, "When the figures of the whole cluster were measured"),

  // The store
  parley_store_requests_total: counter(store, "Requests by operation and outcome", {
    verb: "named",
    outcome: ["ok", "refused", "failed"],
  }),
  parley_store_verb_seconds_total: counter(store, "Time spent on requests by operation", { verb: "named" }),
  parley_store_request_seconds: histogram(store, "Duration of requests", noLabels, fast),
  parley_store_pool_connections: gauge(store, "Connections to PostgreSQL; waiting: requests without one", {
    state: ["used", "idle", "waiting"],
  }),

  // The gateway
  parley_inbound_total: counter(gateway, "Inbound messages by result", {
    channel: "named",
    result: ["stored", "duplicate", "ignored", "command", "action", "change", "refused"],
  }),
  parley_people_over_limit_total: counter(gateway, "Messages refused because their sender is over a limit", {
    limit: ["messages_per_minute", "turns_per_day", "usd_per_day"],
  }),
  parley_outbound_total: counter(gateway, "Send attempts by outcome", {
    channel: "named",
    outcome: ["sent", "part", "retry", "doubtful", "unknown", "dropped"],
  }),
  parley_hooks_total: counter(gateway, "Webhook deliveries by result", {
    hook: "named",
    result: ["stored", "duplicate", "refused"],
  }),
  parley_leases_held: gauge(gateway, "Connections this replica owns"),
  parley_channel_states: gauge(gateway, "Accounts, webhooks and observers by state", {
    channel: "named",
    state: ["connected", "listening", "standby", "failing", "disabled"],
  }),
  parley_live_clients: gauge(gateway, "Connected watchers", { kind: ["ws", "sse"] }),
  parley_slow_clients_total: counter(gateway, "Watchers disconnected because they read too slowly", {
    kind: ["ws", "sse"],
  }),
  parley_observer_events_total: counter(gateway, "Session events for observers by result", {
    observer: "named",
    result: "named",
  }),
  parley_http_requests_total: counter(gateway, "HTTP requests by route and class of status", {
    route: "named",
    status: ["1xx", "2xx", "3xx", "4xx", "5xx"],
  }),
  parley_http_request_seconds: histogram(gateway, "Duration of HTTP requests without streams", noLabels, slow),
  parley_http_refused_total: counter(gateway, "Requests refused before their route, by reason", {
    reason: ["token", "scope", "host", "origin", "rate"],
  }),

  // The tool-runner
  parley_tool_calls_total: counter(runner, "Tool calls by tool and final state", { tool: "named", state: "named" }),
  parley_tool_call_seconds: histogram(runner, "From the request to the settled result", noLabels, slow),
  parley_tool_faults_total: counter(runner, "Exceptions thrown by tools", { tool: "named" }),
  parley_tool_calls_running: gauge(runner, "Number of tool calls currently running"),
  parley_tool_calls_waiting: gauge(runner, "Number of tool calls currently waiting"),
  parley_background_commands: gauge(runner, "Background commands of this replica"),
  parley_workspace_bytes: gauge(runner, "Size of the workspace at its last count"),
  parley_workspace_limit_bytes: gauge(runner, "The configured limit of the workspace; 0: none"),
  parley_workspace_disk_free_bytes: gauge(runner, "Free space of the workspace's disk"),
  parley_hook_seconds: histogram(runner, "Duration of hook runs, by outcome", { outcome: "named" }, slow),
  parley_checkpoint_failures_total: counter(runner, "Files changed without having been captured, by reason", {
    reason: ["untracked", "failed"],
  }),
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof metricCatalog;

/** The names of a kind. */
export type NameOf<K extends MetricDefinition["kind"]> = {
  [N in MetricName]: (typeof metricCatalog)[N]["kind"] extends K ? N : never;
}[MetricName];

/** The labels of a metric and their values. */
export type LabelsOf<N extends MetricName> = {
  [L in keyof (typeof metricCatalog)[N]["labels"]]: (typeof metricCatalog)[N]["labels"][L] extends readonly (infer V)[]
    ? V
    : string;
};
