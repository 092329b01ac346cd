// Who answers: the model, the tools, what they may do unasked. For programs that begin a stream of their own with it.
import { controlModels, permissionModes, toolCatalog } from "@parley/contracts";
import { z } from "zod";
import { version } from "../version.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";

/** How long another service may take to say what it knows by heart. */
const askMs = 1_000;

const AgentInfo = z.object({
  version: z.string(),
  /** Null: no agent-core answers right now. */
  model: z.object({ provider: z.string(), model: z.string() }).nullable(),
  /** Names, sorted; none while no agent-core answers, without those of the tool-runners while none of them has. */
  tools: z.array(z.string()),
  permissionMode: z.enum(permissionModes),
  /** What stands between commands and the machine; null: no tool-runner answers right now. */
  workspace: z.string().nullable(),
});

export function agentRoutes(endpoints: Endpoints, { bus, sessions, settings }: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/agent",
      summary: "Who answers: the model, the tools, what they may do unasked",
      query: z.strictObject({
        /** Id or key: with what was changed for this session alone. */
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
