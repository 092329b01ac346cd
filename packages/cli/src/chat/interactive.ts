// The chat on a terminal: input, output and the meaning of Ctrl-C.

import { join } from "node:path";

import { errorMessage } from "@parley/contracts";

import type { Listener } from "./connection.ts";
import { type ChatPlace, openChat, type OpenChat } from "./open.ts";
import { openPrompt, type Prompt, Questions } from "./prompt.ts";
import { TranscriptRenderer } from "./renderer.ts";
import { Transcript } from "./transcript.ts";
import type { Outcome } from "./turns.ts";
import { api } from "../cluster/api.ts";
import { fetchStatus } from "../cluster/status.ts";
import type { Target } from "../cluster/target.ts";
import { exitCodes, type Io, painter } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";
import { sessionsTable } from "../tables/sessions.ts";
import { statusText } from "../tables/status.ts";

/** Within this time a second Ctrl-C leaves. */
const twiceMs = 2_000;
const defaultWidth = 80;

const ownHelp = `Only in this chat:
/cluster   the state of the cluster
/sessions  all sessions
/quit      leave (also Ctrl-D, or Ctrl-C twice)
Ctrl-C stops the running answer. End a line with \\ to continue it on the next line. You can type and send with Enter while
an answer is being written. Answer an approval request with y, a or n.`;

/** Runs the chat until the person leaves. Returns the exit code. */
export async function runChat(target: Target, place: ChatPlace, io: Io): Promise<number> {
  const talking = new Talk(target, place, io);
  return talking.run();
}

class Talk {
  readonly #target: Target;
  readonly #place: ChatPlace;
  readonly #io: Io;
  readonly #paint;
  readonly #painting: TranscriptRenderer;
  readonly #transcripts = new Map<string, Transcript>();
  readonly #questions = new Questions();
  readonly #left = Promise.withResolvers<number>();
  #chat: OpenChat | null = null;
  #prompt: Prompt | null = null;
  #lost = false;
  #stopping = false;
  #interruptedAt = -Infinity;

  constructor(target: Target, place: ChatPlace, io: Io) {
    this.#target = target;
    this.#place = place;
    this.#io = io;
    this.#paint = painter(io.stdout, io.env);
    this.#painting = new TranscriptRenderer({
      paint: this.#paint,
      width: () => io.stdout.columns || defaultWidth,
      canRewrite: true,
    });
  }

  async run(): Promise<number> {
    const leave = (): void => this.#left.resolve(exitCodes.ok);
    process.once("SIGTERM", leave);
    process.once("SIGHUP", leave);
    this.#chat = await openChat(this.#target, this.#place, this.#listener());
    this.#say(this.#greeting(this.#chat.canSpeak));
    this.#prompt = openPrompt(this.#io, this.#paint("cyan", "› "), join(this.#target.home.path, "chat-history"), {
      message: (text) => void this.#said(text),
      interrupt: (empty) => this.#interrupt(empty),
      end: leave,
    });
    this.#prompt.show();
    const code = await this.#left.promise;
    this.#prompt.close();
    this.#chat.close();
    this.#io.stdout.write(`${this.#painting.endLine()}\n`);
    process.off("SIGTERM", leave);
    process.off("SIGHUP", leave);
    return code;
  }

  #greeting(canSpeak: boolean): string {
    const what = this.#place.session === undefined ? "" : ` with session ${this.#place.session}`;
    const how = canSpeak ? "/help lists the commands" : "this session belongs to another channel: read-only";
    return this.#paint("dim", `connected${what}; ${how}`);
  }

  #listener(): Listener {
    return {
      event: (_session, event) => {
        const turnId = event.type === "message" ? event.message.turnId : event.turnId;
        let transcript = this.#transcripts.get(turnId);
        if (transcript === undefined) {
          transcript = new Transcript({ showSaid: this.#place.session !== undefined });
          this.#transcripts.set(turnId, transcript);
        }
        const pieces = transcript.pieces(event);
        for (const piece of pieces) this.#questions.shown(piece);
        this.#write(pieces.map((piece) => this.#painting.draw(piece)).join(""));
        if (this.#questions.first !== null && pieces.some(({ type }) => type !== "text" && type !== "thinking"))
          this.#settle();
        if (event.type !== "turn.finished") return;
        this.#transcripts.delete(turnId);
        this.#questions.clear();
        this.#stopping = false;
        this.#settle();
      },
      frame: (frame) => {
        if (frame.type === "error" && frame.id === undefined) this.#tell(this.#paint("red", frame.message));
      },
      connected: (again) => {
        for (const transcript of this.#transcripts.values()) transcript.connected();
        if (again && this.#lost) this.#tell(this.#paint("dim", "reconnected"));
        this.#lost = false;
      },
      disconnected: (reason) => {
        if (!this.#lost) this.#tell(this.#paint("yellow", `connection lost (${reason}); reconnecting`));
        this.#lost = true;
      },
    };
  }

  async #said(text: string): Promise<void> {
    this.#interruptedAt = -Infinity;
    const word = text.trim();
    if (word === "") return this.#prompt?.show();
    if (word === "/quit" || word === "/exit") return this.#left.resolve(exitCodes.ok);
    if (word === "/cluster") return this.#show(async () => statusText(await fetchStatus(this.#target), this.#paint));
    if (word === "/sessions") return this.#show(async () => sessionsTable(await this.#sessions(), this.#paint));
    const chat = this.#chat;
    if (chat === null) return;
    const answer = this.#questions.commandFor(word);
    if (!chat.canSpeak) return this.#tell("This session belongs to another channel: it is read-only here.");
    if (chat.conversation.isBusy && answer === null && !word.startsWith("/"))
      this.#tell(this.#paint("dim", `› ${text}`));
    const command = answer?.command ?? word;
    const told = toldByEvents(command, this.#questions.isTold(command), chat.conversation.isAnswering);
    if (answer !== null) this.#questions.settled(answer.approvalId);
    const answering = chat.conversation.say(answer?.command ?? text);
    this.#settle();
    const outcome = await answering;
    this.#report(told?.test(outcome.text) === true ? { state: "done", text: "" } : outcome);
    if (word === "/help") this.#tell(ownHelp);
  }

  #report({ state, text }: Outcome): void {
    // Answers, failures and stops of a turn have been shown by its events.
    if (state === "command" || state === "refused" || text.startsWith("Cancelled before")) {
      this.#tell(state === "refused" ? this.#paint("red", stripControl(text)) : stripControl(text));
    }
    this.#stopping &&= this.#chat?.conversation.isBusy === true;
    this.#settle();
  }

  async #sessions() {
    const answer = await this.#chat?.gateway.run(api.sessions, { limit: 50 });
    return answer?.sessions ?? [];
  }

  async #show(make: () => Promise<string>): Promise<void> {
    try {
      this.#tell(await make());
    } catch (error) {
      this.#tell(this.#paint("red", errorMessage(error)));
    }
  }

  #interrupt(empty: boolean): void {
    const conversation = this.#chat?.conversation;
    if (conversation?.isBusy === true && !this.#stopping) {
      this.#stopping = true;
      conversation.cancel();
      this.#tell(this.#paint("dim", "stopping; press Ctrl-C again to leave"));
      return;
    }
    const now = performance.now();
    if (this.#stopping || (empty && now - this.#interruptedAt < twiceMs)) return this.#left.resolve(exitCodes.ok);
    this.#interruptedAt = empty ? now : -Infinity;
    if (empty) this.#tell(this.#paint("dim", "press Ctrl-C again or Ctrl-D to leave"));
    else this.#prompt?.show();
  }

  /** Prints a line of the chat itself, also in the middle of an answer. */
  #tell(text: string): void {
    this.#say(text);
    this.#settle();
  }

  #say(text: string): void {
    this.#write(`${this.#painting.endLine()}${text}\n`);
  }

  /** Shows the input line unless an answer is being written; always while a question is open. */
  #settle(): void {
    if (this.#chat?.conversation.isBusy === true && this.#questions.first === null) this.#prompt?.hide();
    else this.#prompt?.show();
  }

  #write(text: string): void {
    if (text === "") return;
    this.#prompt?.hide();
    this.#io.stdout.write(text);
  }
}

/** Matches a command result that an event reports as well; null if no event does. */
function toldByEvents(command: string, decides: boolean, isAnswering: boolean): RegExp | null {
  if (decides) return /^(?:Allowed|Denied)\. /;
  return isAnswering && command.toLowerCase() === "/stop" ? /^Stopped\.$/ : null;
}
