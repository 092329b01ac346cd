// The accounts, webhooks and observers that `npm start` lists, each with the state that the gateways report.

import { z } from "zod";

/** If a gateway does not answer within this time, the list is omitted: the start does not wait. */
const withinMs = 1_000;

const Status = z.object({
  replicas: z.array(z.object({ details: z.object({ channels: z.string().optional() }) })),
});

/** One line each, for example `channel  telegram:main connected as @bot`; empty if nothing is configured or known. */
export async function channelLines({ httpUrl, token }: { httpUrl: string; token: string }): Promise<string[]> {
  try {
    const response = await fetch(`${httpUrl}/api/status`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(withinMs),
    });
    const { replicas } = Status.parse(await response.json());
    const states = new Set(replicas.flatMap(({ details }) => details.channels?.split("; ") ?? []));
    return [...states].map((state) => `channel  ${state}`);
  } catch {
    return [];
  }
}
