// Search in the messages of earlier chats (Ctrl-R): words to look for, and the messages that contain them.

import { type Component, type Focusable, Input, matchesKey, SelectList } from "@earendil-works/pi-tui";

import type { History } from "./history.ts";
import { cut } from "./lines.ts";
import type { Theme } from "./theme.ts";

const visibleMatches = 6;
const maxMatches = 200;

export class HistorySearch implements Component, Focusable {
  readonly #history: History;
  readonly #theme: Theme;
  readonly #input = new Input();
  readonly #done: (text: string | null) => void;
  #list: SelectList;

  /** `done` gets the chosen message, or null when the search is cancelled. */
  constructor(history: History, theme: Theme, done: (text: string | null) => void) {
    this.#history = history;
    this.#theme = theme;
    this.#done = done;
    this.#list = this.#matches();
  }

  get focused(): boolean {
    return this.#input.focused;
  }

  set focused(focused: boolean) {
    this.#input.focused = focused;
  }

  handleInput(data: string): void {
    if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c") || matchesKey(data, "ctrl+g")) return this.#done(null);
    if (matchesKey(data, "enter") || matchesKey(data, "tab"))
      return this.#done(this.#list.getSelectedItem()?.value ?? null);
    if (matchesKey(data, "up") || matchesKey(data, "down")) return this.#list.handleInput(data);
    if (matchesKey(data, "ctrl+r")) return this.#list.handleInput("\u001B[B");
    this.#input.handleInput(data);
    this.#list = this.#matches();
  }

  invalidate(): void {
    this.#list.invalidate();
  }

  render(width: number): string[] {
    const { paint } = this.#theme;
    const hint = cut("search earlier messages · Enter takes one · Esc cancels", width);
    return [paint("dim", hint), ...this.#input.render(width), ...this.#list.render(width)];
  }

  #matches(): SelectList {
    const found = this.#history.search(this.#input.getValue()).slice(0, maxMatches);
    const items = found.map((text) => ({ value: text, label: text.replaceAll(/\s+/g, " ") }));
    return new SelectList(items, visibleMatches, this.#theme.select);
  }
}
