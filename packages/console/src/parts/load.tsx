// Loads data for a view, and shows that it is loading, that loading failed with what to do next, or that there is none.
import { signal, type Signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, messageOf } from "../api/http.ts";
import { Icon, type IconName } from "./icons.tsx";

interface LoadState<T> {
  readonly data: Signal<T | undefined>;
  readonly error: Signal<Error | undefined>;
  /** Loads again; the current data stays until the new data has arrived. */
  readonly reload: () => Promise<void>;
}

/** Loads on mount and when `deps` change. `refreshMs`: also at this interval while the page is visible. */
export function useLoad<T>(load: () => Promise<T>, deps: readonly unknown[], refreshMs?: number): LoadState<T> {
  const loaded = useMemo(() => {
    const data = signal<T | undefined>(undefined);
    const error = signal<Error | undefined>(undefined);
    let begun = 0;
    let shown = 0;
    const reload = async () => {
      const mine = ++begun;
      try {
        const found = await load();
        // Responses may overtake each other: after an action, an older one would show the state before it.
        if (mine < shown) return;
        shown = mine;
        data.value = found;
        error.value = undefined;
      } catch (reason) {
        if (mine < shown) return;
        error.value = reason instanceof Error ? reason : new Error(messageOf(reason));
      }
    };
    return { data, error, reload };
  }, deps);
  useEffect(() => {
    void loaded.reload();
    if (refreshMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void loaded.reload();
    }, refreshMs);
    return () => clearInterval(timer);
  }, [loaded, refreshMs]);
  return loaded;
}

/** Renders the data when it has loaded, and before that a progress indicator. An error is shown in addition to the last data. */
export function WhenLoaded<T>({
  state,
  children,
}: {
  state: LoadState<T>;
  children: (data: T) => ComponentChildren;
}): JSX.Element {
  const data = state.data.value;
  const error = state.error.value;
  return (
    <>
      {error !== undefined && <ErrorNotice error={error} retry={state.reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <div class="loading" role="status" aria-label="Loading" />}
    </>
  );
}

/** The error, what to do next, and a button if the action can be repeated. */
export function ErrorNotice({ error, retry }: { error: Error; retry?: () => Promise<void> }): JSX.Element {
  return (
    <div class="failure" role="alert">
      <p>{error.message}</p>
      <p class="muted">{adviceFor(error)}</p>
      {retry !== undefined && (
        <button type="button" class="button" onClick={() => void retry()}>
          <Icon name="refresh" /> Try again
        </button>
      )}
    </div>
  );
}

function adviceFor(error: Error): string {
  if (!(error instanceof ApiError)) return "Reload the page. If it happens again, please report it with this text.";
  if (error.status === 0) return "Start Parley with `npm start`, or check the network.";
  if (error.status === 503) return "A service is starting or not reachable; `npx parley status` shows which.";
  if (error.status === 404) return "It may have been deleted. Go back to the list.";
  if (error.status === 429) return "Wait a minute, then try again.";
  return "Correct the request, or read the log with `npx parley logs`.";
}

/** In place of an empty list; `children` tell how to fill it. */
export function EmptyState({ icon, title, children }: { icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      <div class="muted">{children}</div>
    </div>
  );
}
