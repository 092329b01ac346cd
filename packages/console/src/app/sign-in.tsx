// Sign-in: with the one-time code of a link, or with the token. The code leaves the address immediately.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { ApiError, messageOf, request, signedIn } from "../api/http.ts";
import { live } from "../api/socket.ts";
import { clearDrafts } from "../chat/drafts.ts";
import { toast } from "../parts/toast.tsx";

const problem = signal("");
const busy = signal(false);

/** Exchanges the code in the address for a cookie, or finds out whether the browser has one. */
export async function beginSession(): Promise<void> {
  const code = /[#&]code=([A-Za-z0-9_-]+)/.exec(window.location.hash)?.[1];
  if (code !== undefined) {
    window.history.replaceState(null, "", "#/chat");
    await signIn({ code });
    if (signedIn.value === true) return;
  }
  try {
    await request("GET", "/api/commands");
    signedIn.value = true;
  } catch (error) {
    if (signedIn.value !== false) problem.value = messageOf(error);
    signedIn.value = false;
  }
}

async function signIn(body: { token: string } | { code: string }): Promise<void> {
  busy.value = true;
  try {
    await request("POST", "/api/console/session", { body });
    problem.value = "";
    signedIn.value = true;
  } catch (error) {
    problem.value = messageOf(error);
    signedIn.value = false;
  } finally {
    busy.value = false;
  }
}

/** Signs this browser out. If the gateway does not confirm it, the cookie is still valid, so the page stays open and says so. */
export async function signOut(): Promise<void> {
  try {
    await request("DELETE", "/api/console/session");
  } catch (error) {
    // An expired session has nothing left to end.
    if (!(error instanceof ApiError && error.status === 401)) {
      toast("Not signed out: the gateway did not confirm it. Try again.", true);
      return;
    }
  }
  live.end();
  clearDrafts();
  signedIn.value = false;
}

export function SignIn(): JSX.Element {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget as HTMLFormElement).get("token");
    if (typeof token === "string" && token !== "") void signIn({ token: token.trim() });
  };
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <h1>
          <Logo /> Parley
        </h1>
        <p class="muted">
          <code>npm start</code> prints a link that signs you in. Without it, paste the token here: its file is printed
          below the link, and <code>npx parley console</code> prints a new link at any time.
        </p>
        <label>
          Token
          <input name="token" type="password" autocomplete="current-password" required spellcheck={false} />
        </label>
        {problem.value !== "" && (
          <p class="error-text" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="button primary" disabled={busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M9 10.500h14a1.500 1.500 0 0 1 1.500 1.500v7a1.500 1.500 0 0 1-1.500 1.500h-6l-4.500 4v-4H9A1.500 1.500 0 0 1 7.500 19v-7A1.500 1.500 0 0 1 9 10.500z" />
    </svg>
  );
}
