// The terminal chat on a terminal: draws the state and reports what the person does. Contains no decision about messages.

import { Editor, matchesKey, ProcessTerminal, TuiMainScreen, type Component } from "@earendil-works/pi-tui";
import { pluralize } from "@parley/kit";

import { answerHint, isTypedAheadEnter } from "./answers.ts";
import type { Completion } from "./completion.ts";
import { linesOf } from "./entry-lines.ts";
import { HistorySearch } from "./history-search.ts";
import type { History } from "./history.ts";
import { cut, elapsed, wrapped } from "./lines.ts";
import { activityOf, type ChatState, emptyState, type Entry, openQuestions } from "./state.ts";
import type { Theme } from "./theme.ts";

export interface ScreenListener {
  /** Enter. */
  message(text: string): void;
  /** Ctrl-C; `isEmpty`: nothing was typed. What was typed is removed. */
  interrupt(isEmpty: boolean): void;
  /** Esc. */
  stop(): void;
  /** Ctrl-D without text, or the terminal was closed. */
  end(): void;
}

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const spinnerMs = 120;
const maxWaitingShown = 3;

export class Screen {
  readonly #tui = new TuiMainScreen(new ProcessTerminal());
  readonly #editor: Editor;
  readonly #theme: Theme;
  readonly #history: History;
  readonly #listener: ScreenListener;
  readonly #input: Slot;
  readonly #transcript: TranscriptView;
  #state: ChatState = emptyState;
  #footer = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(theme: Theme, history: History, completion: Completion, listener: ScreenListener) {
    this.#theme = theme;
    this.#history = history;
    this.#listener = listener;
    this.#transcript = new TranscriptView(theme);
    this.#editor = new Editor(this.#tui, theme.editor, { autocompleteMaxVisible: 7 });
    this.#editor.setAutocompleteProvider(completion);
    for (const text of history.messages.toReversed()) this.#editor.addToHistory(text);
    this.#editor.onSubmit = (text) => {
      if (text.trim() !== "") this.#editor.addToHistory(text);
      listener.message(text);
    };
    this.#input = new Slot(this.#editor);
    this.#tui.addChild(this.#transcript);
    this.#tui.addChild(new Lines((width) => this.#status(width)));
    this.#tui.addChild(this.#input);
    this.#tui.addChild(new Lines((width) => [theme.paint("dim", cut(this.#footer, width))]));
    this.#tui.setFocus(this.#editor);
  }

  start(): void {
    const startedAt = performance.now();
    this.#tui.addInputListener((data) => {
      if (isTypedAheadEnter(data, performance.now() - startedAt)) return { data: "\r" };
      return this.#key(data) ? { consume: true } : undefined;
    });
    process.stdin.once("end", () => this.#listener.end());
    this.#tui.start();
  }

  /** Leaves the terminal as it was; what was drawn stays. */
  stop(): void {
    clearInterval(this.#timer);
    this.#input.show(new Lines(() => []));
    this.#footer = "";
    this.#state = { ...this.#state, turns: new Map(), waiting: [], prompt: null };
    this.#tui.renderNow();
    this.#tui.stop();
  }

  show(state: ChatState): void {
    this.#state = state;
    this.#transcript.entries = state.entries;
    const isAsked = openQuestions(state).length > 0;
    const { paint } = this.#theme;
    this.#editor.borderColor = (text) => paint(isAsked ? "yellow" : "dim", text);
    const isActive = activityOf(state) !== null;
    if (isActive && this.#timer === undefined) this.#timer = setInterval(() => this.#tui.requestRender(), spinnerMs);
    if (!isActive) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#tui.requestRender();
  }

  setFooter(text: string): void {
    this.#footer = text;
    this.#tui.requestRender();
  }

  /** Puts a text into the input, unless something is typed there. */
  offer(text: string): void {
    if (this.#editor.getText() === "") this.#editor.setText(text);
    this.#tui.requestRender();
  }

  /** True when the key has a meaning of its own here. */
  #key(data: string): boolean {
    if (this.#input.content !== this.#editor) return false;
    if (matchesKey(data, "ctrl+c")) {
      const isEmpty = this.#editor.getText() === "";
      this.#editor.setText("");
      this.#listener.interrupt(isEmpty);
    } else if (matchesKey(data, "ctrl+d") && this.#editor.getText() === "") this.#listener.end();
    else if (matchesKey(data, "ctrl+o")) this.#expand();
    else if (matchesKey(data, "ctrl+r")) this.#search();
    else if (matchesKey(data, "escape") && !this.#editor.isShowingAutocomplete()) this.#listener.stop();
    else return false;
    this.#tui.requestRender();
    return true;
  }

  #expand(): void {
    this.#transcript.isExpanded = !this.#transcript.isExpanded;
  }

  #search(): void {
    const search = new HistorySearch(this.#history, this.#theme, (text) => {
      this.#input.show(this.#editor);
      this.#tui.setFocus(this.#editor);
      if (text !== null) this.#editor.setText(text);
      this.#tui.requestRender();
    });
    this.#input.show(search);
    this.#tui.setFocus(search);
  }

  /** What waits, what the agent does, and what it asks: between the transcript and the input. */
  #status(width: number): string[] {
    const { paint } = this.#theme;
    const state = this.#state;
    const lines: string[] = [""];
    const queued = state.turns.size > 0 ? state.waiting : state.waiting.slice(1);
    const [first] = state.waiting;
    if (state.turns.size === 0 && first !== undefined) lines.push(paint("cyan", cut(`› ${first.text}`, width)));
    for (const { text } of queued.slice(0, maxWaitingShown)) lines.push(paint("dim", cut(`queued › ${text}`, width)));
    if (queued.length > maxWaitingShown)
      lines.push(paint("dim", `queued › ${pluralize(queued.length - maxWaitingShown, "more message")}`));
    const questions = openQuestions(state);
    const [firstOpen] = questions;
    const activity = activityOf(state);
    const hint = state.prompt ?? (firstOpen === undefined ? null : answerHint(firstOpen, questions.length - 1));
    if (hint !== null) lines.push(...wrapped(hint, width).map((line) => paint("yellow", line)));
    else if (activity !== null) {
      const nowMs = Date.now();
      const frame = spinner[Math.floor(nowMs / spinnerMs) % spinner.length] ?? "";
      const how = state.isStopping ? "stopping" : "Esc stops";
      const text = `${activity.label} ${elapsed(nowMs - activity.sinceMs)}`;
      lines.push(`${paint("cyan", frame)} ${cut(`${text} · ${how}`, width - 2)}`);
    }
    return lines;
  }
}

/** Entries with an empty line between those that are not lists of the same kind. */
class TranscriptView implements Component {
  readonly #theme: Theme;
  #cache = new WeakMap<Entry, readonly string[]>();
  #width = 0;
  #isExpanded = false;
  entries: readonly Entry[] = [];

  constructor(theme: Theme) {
    this.#theme = theme;
  }

  get isExpanded(): boolean {
    return this.#isExpanded;
  }

  set isExpanded(isExpanded: boolean) {
    this.#isExpanded = isExpanded;
    this.invalidate();
  }

  invalidate(): void {
    this.#cache = new WeakMap();
  }

  render(width: number): string[] {
    if (width !== this.#width) this.invalidate();
    this.#width = width;
    const lines: string[] = [];
    let before: Entry["kind"] | null = null;
    for (const entry of this.entries) {
      const isList = entry.kind === before && (entry.kind === "tool" || entry.kind === "note");
      if (before !== null && !isList) lines.push("");
      for (const line of this.#linesOf(entry, width)) lines.push(line);
      before = entry.kind;
    }
    return lines;
  }

  #linesOf(entry: Entry, width: number): readonly string[] {
    const known = this.#cache.get(entry);
    if (known !== undefined) return known;
    const lines = linesOf(entry, { theme: this.#theme, width, isExpanded: this.#isExpanded });
    this.#cache.set(entry, lines);
    return lines;
  }
}

class Lines implements Component {
  readonly #make: (width: number) => string[];

  constructor(make: (width: number) => string[]) {
    this.#make = make;
  }

  render(width: number): string[] {
    return this.#make(width);
  }

  invalidate(): void {}
}

/** A place for one component. */
class Slot implements Component {
  content: Component;

  constructor(content: Component) {
    this.content = content;
  }

  show(content: Component): void {
    this.content = content;
  }

  render(width: number): string[] {
    return this.content.render(width);
  }

  invalidate(): void {
    this.content.invalidate();
  }
}
