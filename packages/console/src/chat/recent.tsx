// The last used sessions, below the navigation.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { href, route } from "../app/router.ts";
import { Icon } from "../parts/icons.tsx";
import { newChat } from "./new-chat.ts";
import { recent, recentChanged } from "./recent-state.ts";

const everyMs = 15_000;
/** While a turn runs in one of them. */
const busyMs = 3_000;

export function Recent(): JSX.Element {
  useEffect(() => {
    recentChanged();
  }, []);
  useEffect(() => {
    const isBusy = recent.value.some(({ runningTurnId, parked }) => runningTurnId !== null && !parked);
    const timer = setInterval(
      () => {
        if (document.visibilityState === "visible") recentChanged();
      },
      isBusy ? busyMs : everyMs,
    );
    return () => clearInterval(timer);
  }, [recent.value]);
  const { view, id } = route.value;
  return (
    <section class="recent" aria-label="Recent sessions">
      <div class="recent-head">
        <h2>Recent</h2>
        <button type="button" class="icon-button" aria-label="New chat" title="New chat" onClick={() => void newChat()}>
          <Icon name="plus" />
        </button>
      </div>
      <ul>
        {recent.value.map(({ sessionId, title, key, runningTurnId, parked }) => (
          <li key={sessionId}>
            <a
              href={href("chat", sessionId)}
              aria-current={view === "chat" && id === sessionId ? "page" : undefined}
              title={title ?? key}
            >
              <bdi>{title ?? (key.includes("console-") ? "New chat" : key)}</bdi>
              {runningTurnId !== null && (
                <span
                  class={parked ? "dot waiting" : "dot running"}
                  role="img"
                  aria-label={parked ? "waiting" : "running"}
                />
              )}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
