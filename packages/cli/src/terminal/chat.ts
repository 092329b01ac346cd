// The chat on a terminal: connects the conversation with the gateway to the model of the screen, and interprets the person's input.

import { randomUUID } from "node:crypto";
import { basename, join } from "node:path";

import { errorMessage, type QueueMode, type SessionSummary } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";

import type { Listener, MessageExtras } from "../chat/connection.ts";
import { findChat, type OpenChat } from "../chat/open.ts";
import type { Outcome } from "../chat/turns.ts";
import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { exitCodes, type Io, type Paint, painter } from "../io/io.ts";
import { workspaceFolder } from "../run/agent-info.ts";
import { readFiles, storeFiles } from "../run/attachments.ts";
import { answerIn, isNo, isReportedByEvents, isYes, queueCommand, rewindPreview } from "./answers.ts";
import { type AgentFacts, bannerLines, farewell, footerText } from "./banner.ts";
import { Completion } from "./completion.ts";
import { allCommands } from "./help.ts";
import { History } from "./history.ts";
import { type LocalCommand, localCommand, recentSessions, sessionItem } from "./local-commands.ts";
import { mentionedFiles } from "./mentions.ts";
import { ChatModel, type ChatInput } from "./model.ts";
import { Screen } from "./screen.ts";
import { type ChatStart, chatPlace, currentSession, recapOf, runningTurn } from "./start.ts";
import { openQuestions } from "./state.ts";
import { type Supervisor, supervisorOf } from "./supervisor.ts";
import { themeOf } from "./theme.ts";

export interface TerminalChatOptions extends ChatStart {
  /** What happens to messages while the agent is busy; undefined: the settings decide. */
  readonly mode: QueueMode | undefined;
  /** Commands that are run first: `/model …`. */
  readonly commands: readonly string[];
}

/** A second Ctrl-C within this time closes the chat, in milliseconds. */
const twiceMs = 2_000;

/** Runs the chat until the person leaves. Returns the exit code. Throws CliError when the chat cannot begin. */
export async function runChat(target: Target, options: TerminalChatOptions, io: Io): Promise<number> {
  return new TerminalChat(target, options, io).run();
}

class TerminalChat {
  readonly #target: Target;
  readonly #options: TerminalChatOptions;
  readonly #io: Io;
  readonly #paint: Paint;
  readonly #gateway: Gateway;
  readonly #history: History;
  readonly #screen: Screen;
  readonly #left = Promise.withResolvers<void>();
  #model = new ChatModel(null);
  #supervisor: Supervisor | null = null;
  #chat: OpenChat | null = null;
  #session: SessionSummary | null = null;
  #facts: AgentFacts | null = null;
  #interruptedAt = -Infinity;
  #keepsCluster = false;
  /** Receives the answer to what the chat itself asks. */
  #onAnswer: (word: string) => void = () => undefined;
  /** Messages are sent one after the other, also while the files of one are stored. */
  #sending: Promise<unknown> = Promise.resolve();

  constructor(target: Target, options: TerminalChatOptions, io: Io) {
    this.#target = target;
    this.#options = options;
    this.#io = io;
    this.#paint = painter(io.stdout, io.env);
    this.#gateway = new Gateway(target);
    this.#history = new History(join(target.home.path, "chat-history"));
    const completion = new Completion({
      commands: allCommands,
      folder: io.cwd,
      sessions: async () => (await recentSessions(this.#gateway)).map(sessionItem),
    });
    this.#screen = new Screen(themeOf(this.#paint), this.#history, completion, {
      message: (text) => void this.#submit(text),
      interrupt: (isEmpty) => this.#interrupt(isEmpty),
      stop: () => this.#stop(),
      end: () => this.#left.resolve(),
    });
  }

  async run(): Promise<number> {
    const leave = (): void => this.#left.resolve();
    process.once("SIGTERM", leave);
    process.once("SIGHUP", leave);
    const requested = await chatPlace(this.#gateway, this.#options);
    const place = { ...requested, running: await runningTurn(this.#gateway, requested) };
    this.#model = new ChatModel(place.conversation);
    // Earlier warnings wait in the channel of the process until it is read.
    this.#supervisor = supervisorOf((text) =>
      this.#apply({ type: "entry", entry: { kind: "note", tone: "warning", text } }),
    );
    const chat = await findChat(this.#target, place, this.#listener());
    this.#chat = chat;
    const refresh = async (): Promise<void> => {
      this.#session = await currentSession(this.#gateway, place, chat.conversation.session);
      this.#facts = await this.#gateway
        .run(api.agent, omitUndefined({ session: this.#session?.sessionId }))
        .catch(() => null);
      this.#showFooter();
    };
    await refresh();
    this.#refresh = refresh;
    const [consoleUrl = null] = this.#target.urls();
    const places = { folder: workspaceFolder(this.#target), consoleUrl };
    this.#output(bannerLines(this.#facts, this.#session, places).join("\n"));
    const recap = await recapOf(this.#gateway, this.#session, place.running);
    if (recap !== null) this.#apply({ type: "entry", entry: recap });
    this.#note(chat.canSpeak ? "/help lists commands and keys" : "this session belongs to another channel: read-only");
    if (place.running !== undefined) this.#follow(place.running.turnId);
    // The events of a running turn follow the recap.
    chat.connect();
    this.#screen.start();
    for (const command of this.#options.commands) void this.#submit(command);
    await this.#left.promise;
    chat.close();
    this.#screen.stop();
    this.#supervisor?.close();
    const cluster = this.#supervisor === null ? "separate" : this.#keepsCluster ? "kept" : "stops";
    this.#io.stdout.write(`${farewell(this.#session, cluster)}\n`);
    process.off("SIGTERM", leave);
    process.off("SIGHUP", leave);
    return exitCodes.ok;
  }

  #refresh: () => Promise<void> = () => Promise.resolve();

  #apply(input: ChatInput): void {
    this.#model.apply(input, Date.now());
    this.#screen.show(this.#model.state);
  }

  /** Shows a turn that was already running when the chat was opened. */
  #follow(turnId: string): void {
    this.#apply({ type: "event", event: { type: "turn.started", turnId, inboxIds: [], attempt: 1 } });
  }

  #note(text: string): void {
    this.#apply({ type: "entry", entry: { kind: "note", tone: "plain", text } });
  }

  #output(text: string): void {
    this.#apply({ type: "entry", entry: { kind: "output", text } });
  }

  #showFooter(): void {
    this.#screen.setFooter(footerText(this.#facts, this.#session, this.#model.state.spent));
  }

  #listener(): Listener {
    return {
      event: (_session, event) => {
        this.#apply({ type: "event", event });
        if (event.type === "turn.finished") void this.#refresh();
      },
      frame: (frame) => {
        if (frame.type === "accepted") this.#apply({ type: "accepted", id: frame.id });
        if (frame.type === "cancelled" && frame.turnId === null) this.#apply({ type: "stopped" });
        if (frame.type === "error" && frame.id === undefined)
          this.#apply({ type: "entry", entry: { kind: "note", tone: "error", text: frame.message } });
      },
      taken: (id, turnId) => this.#apply({ type: "taken", id, turnId }),
      connected: (again) => this.#apply({ type: "connected", again }),
      disconnected: (reason) => this.#apply({ type: "lost", reason }),
    };
  }

  /** Enter was pressed. */
  async #submit(text: string): Promise<void> {
    this.#interruptedAt = -Infinity;
    const word = text.trim();
    if (word === "") return;
    if (this.#model.state.prompt !== null) {
      this.#apply({ type: "prompt", text: null });
      return this.#onAnswer(word.toLowerCase());
    }
    const open = openQuestions(this.#model.state);
    const answer = answerIn(word, open[0]);
    if (answer.kind !== "decision") this.#history.add(text);
    const local = localCommand(word, open.length > 0);
    if (local !== null) return this.#local(local);
    const chat = this.#chat;
    if (chat === null) return;
    if (!chat.canSpeak) return this.#note("This session belongs to another channel: it is read-only here.");
    if (answer.kind === "decision") return this.#command(chat, word, answer.command, answer.isReported);
    if (word.startsWith("/") && queueCommand(word).mode === undefined) {
      const preview = rewindPreview(word);
      if (preview !== null) return this.#rewind(chat, word, preview);
      return this.#command(chat, word, word, isReportedByEvents(word, open, chat.conversation.isAnswering));
    }
    if (answer.kind === "answer") {
      this.#apply({ type: "answered", callId: answer.callId });
      const id = randomUUID();
      this.#apply({ type: "sent", id, text, files: [], isCommand: true });
      return this.#settle(id, chat.conversation.say(text, undefined, this.#extras(), id), false);
    }
    this.#sending = this.#sending.then(() => this.#message(chat, text));
  }

  async #local(command: LocalCommand): Promise<void> {
    if (command === "leave") return this.#leave();
    if (command === "clear") return this.#apply({ type: "cleared" });
    try {
      const deps = { target: this.#target, gateway: this.#gateway, paint: this.#paint, width: this.#io.stdout.columns };
      this.#output(await command(deps));
    } catch (error) {
      this.#apply({ type: "entry", entry: { kind: "note", tone: "error", text: errorMessage(error) } });
    }
  }

  async #message(chat: OpenChat, typed: string): Promise<void> {
    const id = randomUUID();
    const { mode = this.#options.mode, text } = queueCommand(typed);
    try {
      const paths = await mentionedFiles(text, this.#io.cwd);
      this.#apply({ type: "sent", id, text, files: paths.map((path) => basename(path)), isCommand: false });
      const attachments = await storeFiles(this.#gateway, await readFiles(paths, this.#io));
      const extras = { ...this.#extras(), ...(attachments.length === 0 ? {} : { attachments }) };
      void this.#settle(id, chat.conversation.say(text, mode, extras, id), false);
    } catch (error) {
      this.#apply({ type: "settled", id, outcome: { state: "refused", text: errorMessage(error) }, isReported: false });
      this.#screen.offer(typed);
    }
  }

  #extras(): MessageExtras {
    return omitUndefined({ profile: this.#options.profile });
  }

  /** `isReported`: events show the effect as well. */
  async #command(chat: OpenChat, typed: string, command: string, isReported: boolean): Promise<void> {
    const id = randomUUID();
    this.#apply({ type: "sent", id, text: typed, files: [], isCommand: true });
    await this.#settle(id, chat.conversation.say(command, undefined, this.#extras(), id), isReported);
    void this.#refresh();
  }

  /** Shows what would happen to each file, and asks before it happens. */
  async #rewind(chat: OpenChat, typed: string, preview: string): Promise<void> {
    const id = randomUUID();
    this.#apply({ type: "sent", id, text: typed, files: [], isCommand: true });
    const previewing = chat.conversation.say(preview, undefined, this.#extras(), id);
    await this.#settle(id, previewing, false);
    if (!(await previewing).text.startsWith("Dry run:")) return;
    this.#ask("Rewind these files? y rewinds them · n or Esc leaves them as they are", (word) => {
      if (isYes(word)) void this.#command(chat, word, typed, false);
    });
  }

  #ask(text: string, onAnswer: (word: string) => void): void {
    this.#onAnswer = onAnswer;
    this.#apply({ type: "prompt", text });
  }

  async #settle(id: string, answering: Promise<Outcome>, isReported: boolean): Promise<void> {
    const outcome = await answering;
    const isTold = isReported && /^(?:Allowed\.|Denied\.|Stopped\.)/.test(outcome.text);
    this.#apply({ type: "settled", id, outcome, isReported: isTold });
  }

  /** `/exit`: leaves, unless the cluster would stop with the chat. */
  #leave(): void {
    if (this.#supervisor === null) return this.#left.resolve();
    this.#ask(
      "Stop the cluster too? y stops it · n leaves the chat, and the cluster keeps running · Esc stays here",
      (word) => {
        this.#keepsCluster = isNo(word);
        if (this.#keepsCluster) this.#supervisor?.keepCluster();
        if (this.#keepsCluster || isYes(word)) this.#left.resolve();
      },
    );
  }

  /** Stops the running answer, or cancels queued messages; false: there is nothing to stop. */
  #stop(): boolean {
    if (this.#model.state.prompt !== null) {
      this.#apply({ type: "prompt", text: null });
      return true;
    }
    const conversation = this.#chat?.conversation;
    if (conversation?.isBusy !== true || this.#model.state.isStopping) return false;
    conversation.cancel();
    this.#apply({ type: "stopping" });
    return true;
  }

  #interrupt(isEmpty: boolean): void {
    const now = performance.now();
    const isTwice = now - this.#interruptedAt < twiceMs;
    this.#interruptedAt = isEmpty ? now : -Infinity;
    if (isEmpty && isTwice) return this.#left.resolve();
    if (isEmpty && !this.#stop()) this.#note("press Ctrl-C again or Ctrl-D to leave");
  }
}
