// The sessions in the navigation.
import { signal } from "@preact/signals";
import { call, type Result } from "../api/http.ts";

export type SessionRow = Result<"sessionsList">["sessions"][number];

export const recent = signal<readonly SessionRow[]>([]);

const shown = 12;
let loading = false;
let isStale = false;

/** Loads the list again, also when it changes while it is being loaded; a failure leaves it as it is. */
export function recentChanged(): void {
  isStale = loading;
  if (loading) return;
  loading = true;
  call<"sessionsList">("GET", "/api/sessions", { query: { limit: shown, status: "active" } })
    .then(({ sessions }) => (recent.value = sessions))
    .catch(() => undefined)
    .finally(() => {
      loading = false;
      if (isStale) recentChanged();
    });
}
