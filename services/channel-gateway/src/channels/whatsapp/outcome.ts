// What an answer of the Graph API means for a message. Pure. Codes: the page "Error codes" of the Cloud API.
import { backoffMs } from "@parley/kit";
import type { SendOutcome } from "../channel.ts";
import type { Failure, Refusal } from "../json-api.ts";
import { outcomeOf as usualOutcomeOf } from "../outcome.ts";

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
export function outcomeOf(failure: Failure, attempts: number): Exclude<SendOutcome, { state: "sent" }> {
  const known = failure.kind === "refused" ? ruleOf(failure) : undefined;
  if (failure.kind !== "refused" || known === undefined) {
    return usualOutcomeOf(failure, { attempts, pauses: "account" });
  }
  const { afterMs: firstMs, ...scope } = known;
  const afterMs = failure.retryAfterMs ?? backoffMs(attempts + 1, { firstMs, maxMs: longestBackoffMs });
  return { state: "retry", afterMs, reason: failure.reason, ...scope };
}

/** Without an error of the Graph API the code is 0, which is also that of a refused token. */
function ruleOf({ status, code }: Refusal): (typeof retried)[number] | undefined {
  if (isPermission(code) || status === 429) return retried[Number(code)] ?? { scope: "account", afterMs: 60_000 };
  return code !== "0" || status === 401 ? retried[Number(code)] : undefined;
}

/** Whether the platform refuses the credentials rather than the message. */
export function isCredentialRefusal({ status, code }: Refusal): boolean {
  return status === 401 || ["190", "10", "131005"].includes(code) || isPermission(code);
}

function isPermission(code: string): boolean {
  return /^2\d\d$/.test(code);
}
