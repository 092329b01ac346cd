// GET /api/agent: the model, the tools and the permission mode. Clients use it to start a stream in their own format.
import { controlModels, permissionModes, toolCatalog } from "@parley/contracts";
import { z } from "zod";
import { version } from "../version.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";

/** Timeout for services that answer from memory. */
const askMs = 1_000;

const AgentInfo = z.object({
  version: z.string(),
  /** Null: no agent-core is responding. */
  model: z.object({ provider: z.string(), model: z.string() }).nullable(),
  /** Sorted names; empty without an agent-core, and without the tools of tool-runners when none of these is responding. */
  tools: z.array(z.string()),
  permissionMode: z.enum(permissionModes),
  /** The isolation of commands; null: no tool-runner is responding. */
  workspace: z.string().nullable(),
});

export function agentRoutes(endpoints: Endpoints, { bus, sessions, settings }: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/agent",
      summary: "The agent: its model, tools and permission mode",
      query: z.strictObject({
        /** Id or key of a session, whose overrides are then included. */
        session: z.string().min(1).max(600).optional(),
      }),
      answers: { 200: { description: "The agent", schema: AgentInfo } },
    },
    async ({ query }): Promise<z.infer<typeof AgentInfo>> => {
      const [session, model, catalog] = await Promise.all([
        query.session === undefined ? null : sessions.find(query.session),
        bus.request(controlModels, {}, { timeoutMs: askMs }).catch(() => null),
        bus.request(toolCatalog, {}, { timeoutMs: askMs }).catch(() => null),
      ]);
      if (query.session !== undefined && session === null) {
        throw new HttpError(404, "not_found", `there is no session "${query.session}"`);
      }
      const own = session?.overrides.model;
      return {
        version,
        model: model === null ? null : { provider: model.provider, model: own ?? model.model },
        tools: model?.tools ?? [],
        permissionMode: session?.overrides.permissionMode ?? settings.permissions.mode,
        workspace: catalog?.isolation ?? null,
      };
    },
  );
}
