// What an answer of the Graph API means for a message. Pure. Codes: the page "Error codes" of the Cloud API.
import type { SendOutcome } from "../channel.ts";
import type { Answer, Refusal } from "./graph.ts";

/** The person's last message is older than 24 hours. */
export const windowEndedCode = 131047;

type Limited = "conversation" | "account";

/** Codes of refusals after which the same message can be sent later, and what they pause. */
const retried: Readonly<Record<number, { scope?: Limited; afterMs: number }>> = {
  // Limits of the app, the account and the number.
  4: { scope: "account", afterMs: 60_000 },
  80007: { scope: "account", afterMs: 60_000 },
  130429: { scope: "account", afterMs: 1_000 },
  131048: { scope: "account", afterMs: 600_000 },
  // Too many messages from this number to this person: one every 6 s.
  131056: { scope: "conversation", afterMs: 6_000 },
  // The service is unavailable or in maintenance.
  1: { afterMs: 1_000 },
  2: { afterMs: 1_000 },
  131000: { afterMs: 1_000 },
  131016: { afterMs: 1_000 },
  131057: { scope: "account", afterMs: 60_000 },
  // The token, a permission or the account: messages can be sent once that is corrected.
  0: { scope: "account", afterMs: 60_000 },
  3: { scope: "account", afterMs: 60_000 },
  10: { scope: "account", afterMs: 60_000 },
  190: { scope: "account", afterMs: 60_000 },
  368: { scope: "account", afterMs: 600_000 },
  131005: { scope: "account", afterMs: 60_000 },
  131031: { scope: "account", afterMs: 600_000 },
  131042: { scope: "account", afterMs: 600_000 },
  133010: { scope: "account", afterMs: 60_000 },
};

const longestBackoffMs = 600_000;

/** The outcome of a message that was not accepted. `attempts`: earlier attempts of this message. */
export function outcomeOf(
  answer: Exclude<Answer<unknown>, { kind: "ok" }>,
  attempts: number,
): Exclude<SendOutcome, { state: "sent" }> {
  const backoffMs = (firstMs: number) => Math.min(firstMs * 2 ** attempts, longestBackoffMs);
  if (answer.kind === "unreached") return { state: "retry", afterMs: backoffMs(1_000), reason: answer.reason };
  if (answer.kind === "lost") return { state: "unknown", reason: answer.reason };
  const { status, code, description: reason, retryAfterMs } = answer;
  // Without an error of the Graph API the code is 0, which is also that of a refused token.
  const known = code !== 0 || status === 401 ? retried[code] : undefined;
  if (known !== undefined) {
    const { afterMs, scope } = known;
    const waitMs = retryAfterMs ?? backoffMs(afterMs);
    return { state: "retry", afterMs: waitMs, reason, ...(scope === undefined ? {} : { scope }) };
  }
  if (isPermission(code) || status === 429) {
    return { state: "retry", afterMs: retryAfterMs ?? backoffMs(60_000), reason, scope: "account" };
  }
  // A proxy timed out, but the platform may have accepted the message.
  if (status === 504) return { state: "unknown", reason };
  if (status >= 500) return { state: "retry", afterMs: retryAfterMs ?? backoffMs(1_000), reason };
  return { state: "dropped", reason };
}

/** Whether the platform refuses the credentials rather than the message. */
export function isCredentialRefusal({ status, code }: Refusal): boolean {
  return status === 401 || code === 190 || code === 10 || code === 131005 || isPermission(code);
}

function isPermission(code: number): boolean {
  return code >= 200 && code < 300;
}
