// Model usage and cost in the native API.
import { store } from "@parley/contracts";
import { z } from "zod";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { requireSession } from "./sessions.ts";

const dayMs = 86_400_000;

export function usageRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "GET",
      url: "/api/usage",
      summary: "Model calls, tokens and cost by day (UTC) and model",
      query: z.strictObject({
        /** Includes today; 1 = today only. */
        days: z.coerce.number().int().min(1).max(366).default(1),
        /** Id or key of a session; omitted: all sessions. */
        session: z.string().min(1).max(600).optional(),
      }),
      answers: {
        200: { description: "Costs in millionths of a US dollar", schema: store.usageReport.output },
      },
    },
    async ({ query }) => {
      const of =
        query.session === undefined ? {} : { sessionId: (await requireSession(deps, query.session)).sessionId };
      const sinceDay = new Date(Date.now() - (query.days - 1) * dayMs).toISOString().slice(0, 10);
      return deps.bus.request(store.usageReport, { sinceDay, ...of });
    },
  );
}
