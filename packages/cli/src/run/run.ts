// `parley run`: runs one prompt or a program's conversation, and prints text, one result or a stream of messages.

import { createInterface } from "node:readline";

import { errorMessage, type PermissionMode, type SessionEvent } from "@parley/contracts";

import { onInterrupts, reconnectTimeout } from "../chat/once.ts";
import { callPlace, openChat, type OpenChat } from "../chat/open.ts";
import type { Outcome } from "../chat/turns.ts";
import { api } from "../cluster/api.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { CliError, exitCodes, type Io, note, print, readAll, UsageError } from "../io/io.ts";
import { carryOut } from "./control.ts";
import { type PermissionAnswer, PermissionQuestions, readInput } from "./input.ts";
import { lastSession, runOptions, type RunOptions, sessionOf } from "./options.ts";
import { RunStream } from "./stream.ts";
import type { OptionValues } from "../io/options.ts";
import { stripControl } from "../tables/format.ts";

/** `parley run`. Returns the exit code. */
export async function runPrompt(values: OptionValues, positionals: readonly string[], io: Io): Promise<number> {
  const options = runOptions(values, positionals);
  if (options.prompt === null && !options.streamInput && io.stdin.isTTY) {
    throw new UsageError("Name a prompt: parley run 'text'", "parley run --help shows all forms.");
  }
  const gateway = new Gateway(findTarget(values, io));
  const session = options.session === "last" ? await lastSession(gateway) : (options.session?.resume ?? undefined);
  // With stream input, the program's commands also use the session of the run.
  const text = options.streamInput ? null : (options.prompt ?? (await readAll(io.stdin)));
  // On a terminal, the question shows how to answer it from another terminal; a program answers with a control response.
  const atTerminal = options.output === "text" && [io.stdin, io.stderr].every(({ isTTY }) => isTTY);
  const interactive = options.streamInput || atTerminal;
  const place = { ...callPlace("run", options.conversation, text ?? ""), session, onlyOurs: true, interactive };
  const running = new Running(gateway, options, place.conversation, io);
  const waiting = reconnectTimeout(io, place);
  const chat = await openChat(findTarget(values, io), place, { ...running.listener(), ...waiting });
  const interrupts = onInterrupts(io, () => chat.conversation.cancel());
  try {
    if (!chat.canSpeak) throw new CliError("This session belongs to another channel: it is read-only here.");
    running.attach(chat);
    if (options.permissionMode !== null) await running.setPermissionMode(options.permissionMode);
    const ended = text === null ? running.converse() : running.say(text);
    if ((await Promise.race([ended, waiting.lost, interrupts.twice])) === "interrupted") return exitCodes.interrupted;
    const code = running.finish();
    return interrupts.happened() ? exitCodes.interrupted : code;
  } finally {
    interrupts.stop();
    await running.restorePermissionMode();
    chat.close();
  }
}

class Running {
  readonly #gateway: Gateway;
  readonly #options: RunOptions;
  /** Of the conversation. */
  readonly #name: string;
  readonly #io: Io;
  readonly #stream: RunStream;
  readonly #questions: PermissionQuestions;
  #chat: OpenChat | null = null;
  /** The session whose permission mode was changed, and its previous mode; null when nothing was changed. */
  #changedMode: { sessionId: string; before: PermissionMode | null } | null = null;
  #sessionId: string | null = null;
  /** Resolves when the stream has started. */
  #beginning: Promise<void> | null = null;
  #failed = false;
  /** Open questions of this run's turns: call id to turn id. */
  readonly #openQuestions = new Map<string, string>();

  constructor(gateway: Gateway, options: RunOptions, conversation: string, io: Io) {
    this.#gateway = gateway;
    this.#options = options;
    this.#name = conversation;
    this.#io = io;
    this.#questions = new PermissionQuestions(gateway);
    this.#stream = new RunStream(options, {
      message: (message) => {
        if (options.output !== "stream-json") return;
        print(io, JSON.stringify(message));
        if (options.streamInput && message.type === "system" && message.subtype === "permission_request") {
          print(io, JSON.stringify(this.#questions.ask(message)));
        }
      },
      overTurns: () => this.#chat?.conversation.cancel(),
    });
  }

  attach(chat: OpenChat): void {
    this.#chat = chat;
  }

  listener() {
    return {
      event: (_session: string, event: SessionEvent): void => {
        if (this.#options.output === "text" && event.type === "approval.requested") {
          note(this.#io, `${event.tool} needs approval: ${stripControl(event.summary)}`);
          note(this.#io, `answer with: parley approvals --approve ${event.approvalId}   or --deny ${event.approvalId}`);
        }
        this.#follow(event);
        if (event.type === "tool.denied") note(this.#io, `denied: ${event.tool}: ${stripControl(event.reason)}`);
        this.#stream.event(event, Date.now());
      },
      frame: (frame: { type: string; sessionId?: string }): void => {
        if (frame.type === "accepted" && frame.sessionId !== undefined) this.#begin(frame.sessionId);
      },
    };
  }

  /** Sets the session's permission mode until `restorePermissionMode`. Throws CliError with the reason of a refusal. */
  async setPermissionMode(mode: PermissionMode): Promise<void> {
    const before = await this.#session();
    const { text } = await this.#conversation.say(`/mode ${mode}`);
    const now = await this.#session();
    if (now === null || now.overrides.permissionMode !== mode) throw new CliError(text);
    const old = before?.sessionId === now.sessionId ? before.overrides.permissionMode : undefined;
    if (old !== mode) this.#changedMode = { sessionId: now.sessionId, before: old ?? null };
  }

  /** Never rejects: what could not be restored is noted on standard error. */
  async restorePermissionMode(): Promise<void> {
    if (this.#changedMode === null) return;
    const { sessionId, before: permissionMode } = this.#changedMode;
    try {
      await this.#gateway.run(api.updateSession, { id: sessionId, overrides: { permissionMode } });
    } catch (error) {
      note(this.#io, `the permission mode of the session ${sessionId} was not restored: ${errorMessage(error)}`);
    }
  }

  /** Sends one message and waits for its outcome. */
  async say(text: string): Promise<void> {
    if (text.trim() === "") throw new UsageError("The text is empty: there is nothing to send.");
    // Each text is a turn of its own, except the answer to an open question of this run.
    const mode = this.#options.mode ?? (this.#openQuestions.size > 0 ? ("steer" as const) : undefined);
    const outcome = await this.#conversation.say(text, mode);
    await this.#settled(outcome);
  }

  /** Handles lines of standard input until it ends, then waits for the open turns and requests. */
  async converse(): Promise<void> {
    const going: Promise<void>[] = [];
    for await (const line of createInterface({ input: this.#io.stdin, crlfDelay: Infinity })) {
      if (line.trim() === "") continue;
      const input = readInput(line);
      switch (input.kind) {
        case "user":
          going.push(this.say(input.text));
          break;
        case "answer":
          going.push(this.#answer(input.answer));
          break;
        case "control": {
          const deps = {
            conversation: this.#conversation,
            session: () => this.#session(),
            gateway: this.#gateway,
          };
          going.push(
            carryOut(deps, input.id, input.request).then((response) =>
              print(this.#io, JSON.stringify({ type: "control_response", response })),
            ),
          );
          break;
        }
        case "wrong":
          this.#failed = true;
          note(this.#io, input.problem);
          break;
        default:
          input satisfies never;
      }
    }
    await Promise.all(going);
  }

  /** Prints the final result, if the format has one, and returns the exit code. */
  finish(): number {
    const { result } = this.#stream;
    if (result === null) return this.#failed ? exitCodes.error : exitCodes.ok;
    if (this.#options.output === "json") print(this.#io, JSON.stringify(result));
    if (this.#options.output === "text") {
      if (result.is_error) note(this.#io, stripControl(result.result));
      else print(this.#io, result.result);
    }
    return result.is_error || this.#failed ? exitCodes.error : exitCodes.ok;
  }

  get #conversation() {
    if (this.#chat === null) throw new Error("nothing is attached");
    return this.#chat.conversation;
  }

  #follow(event: SessionEvent): void {
    if (event.type === "question.asked") this.#openQuestions.set(event.callId, event.turnId);
    else if (event.type === "tool.finished") this.#openQuestions.delete(event.callId);
    else if (event.type === "turn.finished") {
      for (const [call, turnId] of this.#openQuestions) if (turnId === event.turnId) this.#openQuestions.delete(call);
    }
  }

  async #settled({ state, text }: Outcome): Promise<void> {
    // A command or a refusal may have no session yet, and no turn event reports its end.
    if (this.#beginning === null) this.#begin((await this.#session())?.sessionId ?? "");
    await this.#beginning;
    if (state === "command" || state === "refused" || text.startsWith("Cancelled before")) {
      this.#stream.outside(text, state !== "command");
    }
  }

  #session() {
    return sessionOf(this.#gateway, this.#sessionId, this.#name);
  }

  #begin(sessionId: string): void {
    this.#sessionId ??= sessionId === "" ? null : sessionId;
    this.#beginning ??= this.#init(sessionId);
  }

  /** Starts the stream with the agent's data; events that arrive before are held back. */
  async #init(sessionId: string): Promise<void> {
    try {
      const agent = await this.#gateway.run(api.agent, { session: sessionId === "" ? undefined : sessionId });
      this.#stream.begin({ ...agent, sessionId, model: agent.model?.model ?? null });
    } catch (error) {
      note(this.#io, `agent information is not available: ${errorMessage(error)}`);
      this.#stream.begin({
        sessionId,
        model: null,
        tools: [],
        permissionMode: "default",
        workspace: null,
        version: null,
      });
    }
  }

  /** Applies an approval answer; a failure becomes an error response. */
  async #answer(answer: PermissionAnswer): Promise<void> {
    const response = await this.#questions.answer(answer);
    if (response === null) return;
    this.#failed = true;
    print(this.#io, JSON.stringify({ type: "control_response", response }));
  }
}
