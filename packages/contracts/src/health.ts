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
