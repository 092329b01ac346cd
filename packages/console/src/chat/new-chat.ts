// Starts a session with a route of its own and opens it.
import { call } from "../api/http.ts";
import { go } from "../app/router.ts";
import { runAction } from "../parts/toast.tsx";
import { recentChanged } from "./recent-state.ts";

export async function newChat(): Promise<void> {
  await runAction(async () => {
    const route = `http:default:console-${crypto.randomUUID()}`;
    const { session } = await call<"sessionsOpen">("POST", "/api/sessions", { body: { action: "new", route } });
    recentChanged();
    go("chat", session.sessionId);
  });
}
