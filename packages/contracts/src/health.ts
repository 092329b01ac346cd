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
