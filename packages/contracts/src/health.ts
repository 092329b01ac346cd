// Status of the replicas; every replica replies.
import { z } from "zod";
import { request } from "./contract.ts";
import { services } from "./roles.ts";

export const ReplicaReportSchema = z.object({
  service: z.enum(services),
  replica: z.string(),
  pid: z.number().int(),
  /** agent-core reports `leader` or `standby`; the other services report `active`. */
  role: z.enum(["leader", "standby", "active"]),
  epoch: z.number().int().nullable(),
  ready: z.boolean(),
  uptimeSeconds: z.number(),
  rssMib: z.number(),
  version: z.string(),
  /** Further status for operators: held leases, isolation, queue depth. */
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
export type ReplicaReport = z.infer<typeof ReplicaReportSchema>;

/** The accounts of channels as one gateway sees them. */
export const accountReports = request({
  subject: "gateway.accounts",
  server: "channel-gateway",
  served: "all",
  clients: ["channel-gateway"],
  doc: "Get the state of every account of channels on every gateway replica.",
  input: z.object({}),
  output: z.object({
    accounts: z.array(
      z.object({
        channel: z.string(),
        account: z.string(),
        state: z.enum(["connected", "listening", "standby", "failing", "disabled"]),
        /** Its own name on the platform, if it is connected. */
        as: z.string().nullable(),
        reason: z.string().nullable(),
        /** ISO 8601, UTC. */
        since: z.string(),
      }),
    ),
  }),
});

export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

/** One line of a log. */
export const LogLineSchema = z.object({
  /** ISO 8601, UTC. */
  at: z.string(),
  level: z.enum(logLevels),
  replica: z.string(),
  message: z.string(),
  /** Values that are no text as JSON; each truncated to 1,000 characters. */
  fields: z.record(z.string(), z.string()),
});

export const accountLogs = request({
  subject: "gateway.account_logs",
  server: "channel-gateway",
  served: "all",
  clients: ["channel-gateway"],
  doc: "Get the newest log lines about an account on every gateway replica, oldest first: at most 200 lines and 128 KB of each.",
  input: z.object({
    channel: z.string(),
    account: z.string(),
    /** The minimum level. */
    level: z.enum(logLevels),
    /** Only lines written then or later: ISO 8601, UTC. */
    since: z.string().optional(),
    limit: z.number().int().min(1).max(200),
  }),
  output: z.object({ lines: z.array(LogLineSchema) }),
});

const report = (server: (typeof services)[number]) =>
  request({
    subject: `health.${server}`,
    server,
    served: "all",
    clients: ["channel-gateway", "operator"],
    doc: `Get the status of every ${server} replica.`,
    input: z.object({}),
    output: ReplicaReportSchema,
  });

export const healthReports = {
  store: report("store"),
  "agent-core": report("agent-core"),
  "tool-runner": report("tool-runner"),
  "channel-gateway": report("channel-gateway"),
} as const;
