// Toasts: messages about the outcome of an action, shown for some seconds.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { messageOf } from "../api/http.ts";

const shownMs = 6_000;
const toasts = signal<readonly { id: number; text: string; isError: boolean }[]>([]);
let next = 0;

export function toast(text: string, isError = false): void {
  const id = next++;
  toasts.value = [...toasts.value.slice(-3), { id, text, isError }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((each) => each.id !== id);
  }, shownMs);
}

/** Runs an action of the user. Shows `done` when it succeeds, or the reason when it fails. Resolves to whether it succeeded. */
export async function runAction(action: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await action();
    if (done !== undefined) toast(done);
    return true;
  } catch (error) {
    toast(messageOf(error), true);
    return false;
  }
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, isError }) => (
        <div key={id} class={isError ? "toast error" : "toast"}>
          {text}
        </div>
      ))}
    </div>
  );
}
