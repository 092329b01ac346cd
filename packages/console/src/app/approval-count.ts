// The number of tool calls that wait for approval, for the navigation.
import { signal } from "@preact/signals";
import { call, signedIn } from "../api/http.ts";

export const pendingApprovals = signal(0);
const everyMs = 10_000;

export async function countApprovals(): Promise<void> {
  try {
    const { approvals } = await call<"approvalsList">("GET", "/api/approvals", { query: { limit: 100 } });
    pendingApprovals.value = approvals.length;
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
