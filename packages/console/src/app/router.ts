// The view and its parameters, from the fragment of the address: `#/chat/<session>`, `#/approvals`. The fragment is never sent to a
// server. Pure but for the signal and its listener.
import { signal } from "@preact/signals";

export interface Route {
  view: string;
  /** What follows the view: an id or a path. */
  id: string | null;
  query: Readonly<Record<string, string>>;
}

/** Parses `#/view/id?name=value`; an empty fragment is the chat. */
export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  return {
    view: view === "" ? "chat" : view,
    id: rest.length === 0 || rest[0] === "" ? null : decodeURIComponent(rest.join("/")),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** The address of a view. */
export function href(view: string, id?: string | null, query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(query).toString();
  const path = id === undefined || id === null ? view : `${view}/${encodeURIComponent(id)}`;
  return `#/${path}${search === "" ? "" : `?${search}`}`;
}

export const route = signal<Route>({ view: "chat", id: null, query: {} });

export function startRouter(): void {
  const read = () => {
    route.value = parseRoute(window.location.hash);
  };
  window.addEventListener("hashchange", read);
  read();
}

export function go(view: string, id?: string | null, query?: Readonly<Record<string, string>>): void {
  window.location.hash = href(view, id, query);
}

/** Like `go`, without an entry in the history. */
export function replaceRoute(view: string, id: string | null): void {
  window.history.replaceState(null, "", href(view, id));
  route.value = parseRoute(window.location.hash);
}
