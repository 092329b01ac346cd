// A run in progress: sends the messages of a prompt or a program, and prints the stream or the result.

import { createInterface } from "node:readline";

import type { AnswerSchema, SessionEvent } from "@parley/contracts";

import type { OpenChat } from "../chat/open.ts";
import type { Outcome } from "../chat/turns.ts";
import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { type Io, note, print } from "../io/io.ts";
import { agentInfo } from "./agent-info.ts";
import { storeFiles } from "./attachments.ts";
import { carryOut } from "./control.ts";
import { finishRun } from "./finish.ts";
import { type ProgramAnswer, readInput, replayOf, type UserInput } from "./input.ts";
import { RunNotes } from "./notes.ts";
import { OpenQuestions } from "./open-questions.ts";
import type { RunOptions } from "./options.ts";
import { type RunSession, sessionOf } from "./place.ts";
import { Program } from "./program.ts";
import { limitText, RunStream } from "./stream.ts";
import { Subagents } from "./subagents.ts";

export interface RunDeps {
  readonly gateway: Gateway;
  readonly target: Target;
  readonly io: Io;
  /** Opens the session of the run, if there is none yet. */
  readonly openSession: () => Promise<RunSession>;
}

export class Running {
  readonly #deps: RunDeps;
  readonly #options: RunOptions;
  /** Of the conversation. */
  readonly #name: string;
  readonly #io: Io;
  readonly #stream: RunStream;
  readonly #program: Program;
  #chat: OpenChat | null = null;
  /** The hooks, tools and instructions of the program count for the messages that follow. */
  #initialized: Promise<void> = Promise.resolve();
  #sessionId: string | null;
  /** Resolves when the stream has started. */
  #beginning: Promise<void> | null = null;
  #failed = false;
  /** The program stopped a turn itself. */
  #interrupted = false;
  /** Why the program's options cannot be honoured: its messages are not sent. */
  #refusal: string | null = null;
  #instructions: string[];
  /** With a limit of the run, a message is sent after the previous one is answered. */
  #previous: Promise<unknown> = Promise.resolve();
  readonly #pending = new Set<Promise<void>>();
  /** Aborted when the run is stopped from outside. */
  readonly #ending = new AbortController();
  readonly #notes: RunNotes;
  readonly #openQuestions = new OpenQuestions();
  readonly #subagents: Subagents;
  #forwardsTexts = false;

  /** `sessionId`: the continued session. `conversation`: the name of the chat. */
  constructor(deps: RunDeps, options: RunOptions, sessionId: string | null, conversation: string) {
    this.#deps = deps;
    this.#options = options;
    this.#sessionId = sessionId;
    this.#name = conversation;
    this.#io = deps.io;
    this.#notes = new RunNotes(deps.io, options.output);
    this.#instructions = options.instructions === null ? [] : [options.instructions];
    this.#program = new Program({
      ...deps,
      options,
      sessionId: () => this.#sessionId,
      start: (work) => this.#start(work),
      stop: () => this.#interrupt(),
      again: (text) => this.#start(this.say({ text, files: [], content: text, uuid: null })),
      fail: () => void (this.#failed = true),
      report: (body) => this.#stream.extra(body),
    });
    if (options.answerSchema !== null) this.#program.stream.requireSchema(options.answerSchema);
    this.#stream = new RunStream(options, this.#program);
    this.#subagents = new Subagents(deps.target, {
      event: (event, atMs) => this.#stream.event(event, atMs),
      subagentEvent: (subagent, event, atMs) => {
        this.#program.subagentEvent(event, subagent);
        this.#stream.subagentEvent({ ...subagent, texts: this.#forwardsTexts }, event, atMs);
      },
      ended: (subagent, text) => this.#program.observer.subagentEnded(subagent, text),
    });
  }

  attach(chat: OpenChat): void {
    this.#chat = chat;
  }

  async close(): Promise<void> {
    const { background } = this.#subagents;
    this.#subagents.close();
    await this.#program.stopUnreviewed(background);
    await this.#program.close();
  }

  listener() {
    return {
      event: (_session: string, event: SessionEvent): void => {
        this.#notes.event(event);
        this.#openQuestions.follow(event);
        this.#program.event(event);
        if (this.#options.output === "stream-json") this.#subagents.receive(event, Date.now());
        else this.#stream.event(event, Date.now());
      },
      frame: (frame: { type: string; sessionId?: string }): void => {
        if (frame.type === "accepted" && frame.sessionId !== undefined) this.#begin(frame.sessionId);
      },
    };
  }

  /** Sends one message and waits for its outcome. */
  async say(input: UserInput): Promise<void> {
    await this.#initialized;
    // Each text is a turn of its own, except the answer to an open question of this run.
    const answers = !this.#openQuestions.isEmpty;
    const { maxModelCalls, maxUsd } = this.#options;
    if (answers || (maxModelCalls === null && maxUsd === null)) return this.#send(input, answers);
    const sent = this.#previous.then(() => this.#send(input, false));
    this.#previous = sent.catch(() => undefined);
    return sent;
  }

  async #send(input: UserInput, answers: boolean): Promise<void> {
    if (this.#refusal !== null) return this.#refuse(this.#refusal);
    const remaining = this.#stream.remaining;
    if (typeof remaining === "string")
      return this.#stream.resultWithoutTurn(limitText(remaining, this.#options), remaining);
    const hasSpent = this.#stream.result !== null && Object.keys(remaining).length > 0;
    if (hasSpent) await this.#deps.gateway.run(api.updateSession, { id: this.#sessionId, overrides: remaining });
    const before = await this.#program.stream.beforePrompt(input.text);
    this.#instructions.push(...before.sessionContexts);
    if (before.refusal !== null) return this.#refuse(before.refusal);
    const files = await storeFiles(this.#deps.gateway, input.files);
    const mode = this.#options.queueMode ?? (answers ? ("steer" as const) : undefined);
    const forTurn = this.#instructions.splice(0);
    const instructions = [...forTurn, ...before.contexts].join("\n\n");
    const outcome = await this.#conversation.say(input.text, mode, {
      ...(files.length === 0 ? {} : { attachments: files }),
      ...(instructions === "" ? {} : { instructions }),
      ...(this.#options.profile === null ? {} : { profile: this.#options.profile }),
      ...this.#program.extras(),
    });
    // The first turn has not begun yet: its instructions are sent with the next message.
    if (outcome.state === "command" || outcome.state === "refused") this.#instructions.unshift(...forTurn);
    await this.#settled(outcome);
  }

  /** Handles lines of standard input until it ends, then waits for the open turns and requests. */
  async converse(): Promise<void> {
    const lines = createInterface({ input: this.#io.stdin, crlfDelay: Infinity });
    this.#ending.signal.addEventListener("abort", () => lines.close());
    for await (const line of lines) {
      if (line.trim() !== "" && !this.#ending.signal.aborted) this.#handle(line);
    }
    this.#program.inputEnded();
    // The end of a turn may continue the run with another message.
    do {
      while (this.#pending.size > 0) await Promise.all(this.#pending);
      await this.#program.stream.flushed();
    } while (this.#pending.size > 0);
    this.#program.ended();
  }

  #handle(line: string): void {
    const input = readInput(line);
    switch (input.kind) {
      case "user":
        if (this.#options.replay) print(this.#io, JSON.stringify(replayOf(input, this.#sessionId ?? "")));
        this.#start(this.say(input));
        break;
      case "answer":
        if (!this.#program.requests.answer(input.answer)) this.#start(this.#answer(input.answer));
        break;
      case "control": {
        const done = this.#control(input.id, input.request);
        if (input.request.subtype === "initialize") this.#initialized = done;
        this.#start(done);
        break;
      }
      case "unusable":
        this.#start(this.#refuse(input.problem));
        break;
      case "wrong":
        this.#failed = true;
        note(this.#io, input.problem);
        break;
      case "nothing":
        break;
      default:
        input satisfies never;
    }
  }

  /** Stops the running turn and reads no further input, so that the run ends. */
  stop(): void {
    this.#ending.abort();
    this.#conversation.cancel();
  }

  /** Prints the final result, if the format has one, and returns the exit code. */
  finish(): number {
    const { maxUsd } = this.#options;
    const run = { failed: this.#failed, interrupted: this.#interrupted, maxUsd };
    return finishRun(this.#io, this.#options.output, this.#stream.result, run);
  }

  get #conversation() {
    if (this.#chat === null) throw new Error("nothing is attached");
    return this.#chat.conversation;
  }

  #start(work: Promise<void>): void {
    const pending: Promise<void> = work.finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  /** Answers a message that is not sent. */
  async #refuse(reason: string): Promise<void> {
    await this.#ensureBegun();
    this.#stream.resultWithoutTurn(reason, "error");
  }

  #interrupt(): void {
    this.#interrupted = true;
    this.#conversation.cancel();
  }

  async #control(id: string, request: { subtype: string }): Promise<void> {
    if (request.subtype === "interrupt") this.#interrupted = true;
    const options = this.#options;
    const deps = {
      conversation: this.#conversation,
      session: () => this.#session(),
      gateway: this.#deps.gateway,
      registerHooks: (hooks: unknown) => this.#program.hooks.register(hooks),
      define: (names: readonly string[], manifests: unknown, agents: unknown) =>
        this.#program.session.define(
          [...options.servers, ...Object.keys(options.externalServers), ...names],
          manifests,
          agents,
        ),
      addServers: (servers: unknown) => this.#program.addServers(servers),
      serverNames: () => this.#program.servers.names,
      beforeCompact: () => this.#program.stream.beforeCompact(null),
      requireSchema: (schema: AnswerSchema) => this.#program.stream.requireSchema(schema),
      instruct: (text: string) => void this.#instructions.push(text),
      forwardTexts: () => void (this.#forwardsTexts = true),
    };
    const response = await carryOut(deps, id, request);
    // Programs go on after this error, without the hooks and servers that they asked for.
    if (request.subtype === "initialize" && response.subtype === "error") this.#refusal = response.error;
    print(this.#io, JSON.stringify({ type: "control_response", response }));
  }

  async #settled({ state, text }: Outcome): Promise<void> {
    await this.#ensureBegun();
    await this.#subagents.passed();
    if (state === "command" || state === "refused" || text.startsWith("Cancelled before")) {
      this.#stream.resultWithoutTurn(text, state === "command" ? "end_turn" : "error");
    }
  }

  /** A command or a refusal may have no session yet, and no turn event reports its end. */
  async #ensureBegun(): Promise<void> {
    if (this.#beginning === null) this.#begin((await this.#session())?.sessionId ?? "");
    await this.#beginning;
  }

  #session() {
    return sessionOf(this.#deps.gateway, this.#sessionId, this.#name);
  }

  #begin(sessionId: string): void {
    this.#sessionId ??= sessionId === "" ? null : sessionId;
    this.#beginning ??= agentInfo(this.#deps.gateway, this.#deps.target, sessionId, this.#io).then((info) =>
      this.#stream.begin(this.#program.session.added(info)),
    );
  }

  /** Applies an approval answer; a failure becomes an error response. */
  async #answer(answer: ProgramAnswer): Promise<void> {
    if (this.#program.approvals.endsTurn(answer)) this.#interrupted = true;
    const response = await this.#program.approvals.answer(answer);
    if (response === null) return;
    this.#failed = true;
    print(this.#io, JSON.stringify({ type: "control_response", response }));
  }
}
