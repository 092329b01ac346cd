// The fakes that replace the repository's scripts.

import { fileURLToPath } from "node:url";

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const service = path("service.ts");

export const fakePrograms = {
  migrate: path("migrate.ts"),
  services: { store: service, "agent-core": service, "tool-runner": service, "channel-gateway": service },
};

export const failingMigration = { ...fakePrograms, migrate: path("failing-migrate.ts") };
