// Reports when the connection is lost and restored, and stops waiting when it is lost for too long.

import { CliError } from "../errors.ts";
import { note, type Io } from "../io.ts";
import type { Listener } from "./conversation-ports.ts";
import { mainSession, ownPrefix, type ChatPlace } from "./open.ts";

/** How long to retry gateways before giving up. */
const patienceMs = 120_000;

export interface Patience extends Pick<Listener, "connected" | "disconnected"> {
  /** Rejects with CliError when no gateway has answered for too long. */
  readonly lost: Promise<never>;
}

/** `place`: where the message was sent, so that its answer can be found later. */
export function reconnectTimeout(io: Io, { conversation, session, thread }: ChatPlace): Patience {
  const key = session ?? (thread === "own" ? `${ownPrefix}${conversation}` : mainSession);
  const { promise, reject } = Promise.withResolvers<never>();
  // The caller may no longer wait: a rejection must not be unhandled.
  promise.catch(() => undefined);
  let downSince: number | null = null;
  return {
    lost: promise,
    connected: (again) => {
      if (again) note(io, "reconnected");
      downSince = null;
    },
    disconnected: (reason) => {
      if (downSince === null) note(io, `connection lost (${reason}); reconnecting`);
      downSince ??= performance.now();
      if (performance.now() - downSince < patienceMs) return;
      reject(
        new CliError(
          "No gateway answers. An accepted message is stored and will be answered when the cluster runs again.",
          {
            fix: `Read the answer with: parley sessions show ${key}`,
          },
        ),
      );
    },
  };
}
