// The number of tool calls and questions that wait for the owner, for the navigation.
import { signal } from "@preact/signals";
import { call, signedIn } from "../api/http.ts";

export const pendingApprovals = signal(0);
const everyMs = 10_000;

export async function countApprovals(): Promise<void> {
  try {
    const [{ approvals }, { questions }] = await Promise.all([
      call<"approvalsList">("GET", "/api/approvals", { query: { limit: 100 } }),
      call<"questionsList">("GET", "/api/questions", { query: { limit: 100 } }),
    ]);
    pendingApprovals.value = approvals.length + questions.filter(({ ownerAnswers }) => ownerAnswers).length;
  } catch {
    // The count stays as it was; the views show errors.
  }
}

/** Counts now and periodically; returns the end of it. */
export function watchApprovals(): () => void {
  void countApprovals();
  const timer = setInterval(() => {
    if (document.visibilityState === "visible" && signedIn.value === true) void countApprovals();
  }, everyMs);
  return () => clearInterval(timer);
}
