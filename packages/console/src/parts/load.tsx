// Loads data for a view: while it loads, when it failed, when there is none. Every failure says what to do.
import { signal, type Signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, messageOf } from "../api/http.ts";
import { Icon, type IconName } from "./icons.tsx";

interface Loaded<T> {
  readonly data: Signal<T | undefined>;
  readonly error: Signal<Error | undefined>;
  /** Loads again; the data stays until then. */
  readonly reload: () => Promise<void>;
}

/** Loads on mount, when `deps` change, and every `everyMs` while the page is visible. */
export function useLoad<T>(load: () => Promise<T>, deps: readonly unknown[], everyMs?: number): Loaded<T> {
  const loaded = useMemo(() => {
    const data = signal<T | undefined>(undefined);
    const error = signal<Error | undefined>(undefined);
    const reload = async () => {
      try {
        data.value = await load();
        error.value = undefined;
      } catch (reason) {
        error.value = reason instanceof Error ? reason : new Error(messageOf(reason));
      }
    };
    return { data, error, reload };
  }, deps);
  useEffect(() => {
    void loaded.reload();
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void loaded.reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [loaded, everyMs]);
  return loaded;
}

/** Shows the data, or why there is none. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }): JSX.Element {
  const data = of.data.value;
  const error = of.error.value;
  return (
    <>
      {error !== undefined && <Failure error={error} retry={of.reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <div class="loading" role="status" aria-label="Loading" />}
    </>
  );
}

export function Failure({ error, retry }: { error: Error; retry?: () => Promise<void> }): JSX.Element {
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
  return "Correct the request, or look into the log with `npx parley logs`.";
}

/** What to do when a list is empty. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      <div class="muted">{children}</div>
    </div>
  );
}
