// The roles on the bus. Every role is one NATS user with the permissions that `permissions.ts` derives from the registry.

export const services = ["store", "agent-core", "tool-runner", "channel-gateway"] as const;
export type ServiceName = (typeof services)[number];

/** A service, or the operator (the CLI's `doctor` and `status` when no gateway answers). */
export type Role = ServiceName | "operator";
export const roles: readonly Role[] = [...services, "operator"];
