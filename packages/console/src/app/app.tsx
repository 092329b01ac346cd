// The frame of the console: sign-in or shell, navigation, palette, keys.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { signedIn } from "../api/http.ts";
import { connection } from "../api/socket.ts";
import { Icon } from "../parts/icons.tsx";
import { Toasts } from "../parts/toast.tsx";
import { Recent } from "../chat/recent.tsx";
import { pendingApprovals, watchApprovals } from "./approval-count.ts";
import { handleKey, helpOpen } from "./keys.ts";
import { KeyHelp, Palette, paletteOpen } from "./palette.tsx";
import { href, route } from "./router.ts";
import { Logo, SignIn, signOut } from "./sign-in.tsx";
import { listedViews, views } from "./views.ts";

export function App(): JSX.Element | null {
  if (signedIn.value === null) return null;
  return signedIn.value ? <Shell /> : <SignIn />;
}

function Shell(): JSX.Element {
  const menuOpen = useSignal(false);
  const { view, id } = route.value;
  const current = views.find(({ name }) => name === view);
  useEffect(() => watchApprovals(), []);
  useLayoutEffect(() => {
    menuOpen.value = false;
    document.title = current === undefined ? "Parley" : `${current.title} · Parley`;
  }, [view, id]);
  // Before the first paint: who sees the page may press a key.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") menuOpen.value = false;
      handleKey(event);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const Component = current?.component;
  return (
    <div class={menuOpen.value ? "shell menu-open" : "shell"}>
      <a class="skip" href="#content" onClick={focusContent}>
        Skip to content
      </a>
      <header class="top-bar">
        <button
          type="button"
          class="icon-button"
          aria-label="Menu"
          aria-expanded={menuOpen.value}
          onClick={() => (menuOpen.value = !menuOpen.value)}
        >
          <Icon name="menu" />
        </button>
        <span class="top-title">{current?.title ?? "Parley"}</span>
        <ConnectionState />
        {pendingApprovals.value > 0 && (
          <a class="badge" href={href("approvals")} aria-label={`${pendingApprovals.value} pending approvals`}>
            {pendingApprovals}
          </a>
        )}
      </header>
      <nav class="side" aria-label="Views">
        <a class="brand" href={href("chat")}>
          <Logo /> Parley
        </a>
        <button type="button" class="search-button" onClick={() => (paletteOpen.value = true)}>
          <Icon name="search" /> Go to… <kbd>Ctrl K</kbd>
        </button>
        <ul class="nav-list">
          {listedViews.map(({ name, title, icon }) => (
            <li key={name}>
              <a href={href(name)} aria-current={name === view ? "page" : undefined}>
                <Icon name={icon} />
                <span>{title}</span>
                {name === "approvals" && pendingApprovals.value > 0 && (
                  <span class="badge" aria-label={`${pendingApprovals.value} pending`}>
                    {pendingApprovals}
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
        <Recent />
        <div class="side-end">
          <ConnectionState />
          <button type="button" class="link-button" onClick={() => (helpOpen.value = true)}>
            Keys <kbd>?</kbd>
          </button>
          <a href="/docs/" target="_blank">
            Docs
          </a>
          <button type="button" class="link-button" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </nav>
      <div class="scrim" onClick={() => (menuOpen.value = false)} />
      <main id="content" class="content" tabIndex={-1}>
        {Component === undefined ? <UnknownView view={view} /> : <Component />}
      </main>
      <Palette />
      <KeyHelp />
      <Toasts />
    </div>
  );
}

function focusContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#content")?.focus();
}

function ConnectionState(): JSX.Element | null {
  if (connection.value !== "closed") return null;
  return (
    <span class="connection" role="status">
      Reconnecting…
    </span>
  );
}

function UnknownView({ view }: { view: string }): JSX.Element {
  return (
    <div class="empty">
      <h1>There is no view “{view}”</h1>
      <p>
        <a href={href("chat")}>Go to the chat</a>, or press <kbd>Ctrl K</kbd>.
      </p>
    </div>
  );
}
