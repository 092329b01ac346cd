// The accounts, webhooks and observers that a start introduces, each with its state as the gateways report it.

import { z } from "zod";

/** A gateway that does not answer by then is introduced without them: the start does not wait. */
const withinMs = 1_000;

const Status = z.object({
  replicas: z.array(z.object({ details: z.object({ channels: z.string().optional() }) })),
});

/** One line each, as in `channel  telegram:main connected as @bot`; none where nothing is configured or known. */
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
