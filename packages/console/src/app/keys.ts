// Keys that work everywhere: Ctrl-K, `?`, `g` with a letter, and j/k in lists. They do nothing while the person types.
import { signal } from "@preact/signals";
import { go } from "./router.ts";
import { paletteOpen } from "./palette-state.ts";
import { listedViews } from "./views.ts";

export const helpOpen = signal(false);

/** How long `g` waits for its letter: between the presses, also when a busy page handles them late. */
const chordMs = 1_000;
let chordUntilMs = 0;

export function handleKey(event: KeyboardEvent): void {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    paletteOpen.value = !paletteOpen.value;
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.timeStamp < chordUntilMs) {
    chordUntilMs = 0;
    const view = listedViews.find(({ key }) => key === event.key);
    if (view !== undefined) {
      event.preventDefault();
      go(view.name);
    }
    return;
  }
  switch (event.key) {
    case "?":
      helpOpen.value = true;
      break;
    case "g":
      chordUntilMs = event.timeStamp + chordMs;
      break;
    case "j":
    case "k":
      if (moveFocus(event.key === "j" ? 1 : -1)) event.preventDefault();
      break;
    case "/":
      if (focusFirst("[data-search], .composer textarea")) event.preventDefault();
      break;
    default:
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, dialog, [contenteditable]") !== null;
}

/** Moves the focus to the next or previous row of the list in the view. */
function moveFocus(step: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  if (rows.length === 0) return false;
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

function focusFirst(selector: string): boolean {
  const found = document.querySelector<HTMLElement>(selector);
  found?.focus();
  return found !== null;
}
