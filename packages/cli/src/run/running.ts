// A run in progress: sends the messages of a prompt or a program, and prints the stream or the result.

import { createInterface } from "node:readline";

import { ownToolName, type SessionEvent } from "@parley/contracts";
import type { SdkMessage } from "@parley/projections";

import type { OpenChat } from "../chat/open.ts";
import type { Outcome } from "../chat/turns.ts";
import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { exitCodes, type Io, note, print } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";
import { agentInfo, workspaceFolder } from "./agent-info.ts";
import { storeFiles } from "./attachments.ts";
import { carryOut } from "./control.ts";
import { type HookReport, ProgramHooks } from "./hooks.ts";
import { type ProgramAnswer, readInput, type UserInput } from "./input.ts";
import { OpenQuestions } from "./open-questions.ts";
import type { RunOptions } from "./options.ts";
import { sessionOf } from "./place.ts";
import { ProgramApprovals } from "./program-approval.ts";
import { ProgramStream } from "./program-stream.ts";
import { limitText, RunStream } from "./stream.ts";
import { Subagents } from "./subagents.ts";

export interface RunDeps {
  readonly gateway: Gateway;
  readonly target: Target;
  readonly io: Io;
}

export class Running {
  readonly #deps: RunDeps;
  readonly #options: RunOptions;
  /** Of the conversation. */
  readonly #name: string;
  readonly #io: Io;
  readonly #stream: RunStream;
  readonly #hooks: ProgramHooks;
  readonly #approvals: ProgramApprovals;
  readonly #program: ProgramStream;
  #chat: OpenChat | null = null;
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
  readonly #openQuestions = new OpenQuestions();
  readonly #subagents: Subagents;
  #forwardsTexts = false;

  /** `sessionId`: the continued session. `conversation`: the name of the chat. */
  constructor(deps: RunDeps, options: RunOptions, sessionId: string | null, conversation: string) {
    const { gateway, io } = deps;
    this.#deps = deps;
    this.#options = options;
    this.#sessionId = sessionId;
    this.#name = conversation;
    this.#io = io;
    this.#instructions = options.instructions === null ? [] : [options.instructions];
    const send = (request: object): void => print(io, JSON.stringify(request));
    const report = options.hookEvents ? (body: HookReport) => this.#stream.extra(body) : undefined;
    this.#hooks = new ProgramHooks(send, report);
    this.#approvals = new ProgramApprovals({
      gateway,
      hooks: this.#hooks,
      programApproves: options.programApproves,
      hookContext: () => this.#hookContext(),
      send,
      note: (text) => note(io, text),
      start: (work) => this.#start(work),
    });
    this.#program = new ProgramStream({
      hooks: this.#hooks,
      hookContext: () => this.#hookContext(),
      print: (message) => print(io, JSON.stringify(message)),
      note: (text) => note(io, text),
      stop: () => this.#interrupt(),
      again: (text) => this.#start(this.say({ text, files: [], content: text, uuid: null })),
    });
    this.#stream = new RunStream(options, { message: (message) => this.#show(message) });
    this.#subagents = new Subagents(deps.target, {
      event: (event, atMs) => this.#stream.event(event, atMs),
      subagentEvent: (subagent, event, atMs) => {
        this.#stream.subagentEvent({ ...subagent, texts: this.#forwardsTexts }, event, atMs);
        if (options.streamInput) this.#approvals.subagentEvent(event, subagent.sessionId);
      },
    });
  }

  attach(chat: OpenChat): void {
    this.#chat = chat;
  }

  close(): void {
    this.#subagents.close();
  }

  listener() {
    return {
      event: (_session: string, event: SessionEvent): void => {
        if (this.#options.output === "text" && event.type === "approval.requested") {
          note(this.#io, `${event.tool} needs approval: ${stripControl(event.summary)}`);
          note(this.#io, `answer with: parley approvals --approve ${event.approvalId}   or --deny ${event.approvalId}`);
        }
        this.#openQuestions.follow(event);
        if (event.type === "tool.denied")
          note(this.#io, `denied: ${ownToolName(event.tool)}: ${stripControl(event.reason)}`);
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
    const left = this.#stream.left;
    if (typeof left === "string") return this.#stream.outside(limitText(left, this.#options), left);
    const hasSpent = this.#stream.result !== null && Object.keys(left).length > 0;
    if (hasSpent) await this.#deps.gateway.run(api.updateSession, { id: this.#sessionId, overrides: left });
    const before = await this.#program.beforePrompt(input.text);
    if (before.refusal !== null) return this.#refuse(before.refusal);
    const files = await storeFiles(this.#deps.gateway, input.files);
    const mode = this.#options.queueMode ?? (answers ? ("steer" as const) : undefined);
    const instructions = [...this.#instructions.splice(0), ...before.contexts].join("\n\n");
    const outcome = await this.#conversation.say(input.text, mode, {
      ...(files.length === 0 ? {} : { attachments: files }),
      ...(instructions === "" ? {} : { instructions }),
      ...(this.#options.profile === null ? {} : { profile: this.#options.profile }),
      ...(this.#hooks.has("PreToolUse") ? { review: true } : {}),
    });
    await this.#settled(outcome);
  }

  /** Handles lines of standard input until it ends, then waits for the open turns and requests. */
  async converse(): Promise<void> {
    for await (const line of createInterface({ input: this.#io.stdin, crlfDelay: Infinity })) {
      if (line.trim() !== "") await this.#handle(line);
    }
    this.#hooks.close();
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    await this.#program.flushed();
  }

  async #handle(line: string): Promise<void> {
    const input = readInput(line);
    switch (input.kind) {
      case "user":
        if (this.#options.replay) this.#replay(input);
        this.#start(this.say(input));
        break;
      case "answer":
        if (!this.#hooks.answer(input.answer)) this.#start(this.#answer(input.answer));
        break;
      case "control": {
        const done = this.#control(input.id, input.request);
        // The hooks and instructions count for the messages that follow.
        if (input.request.subtype === "initialize") await done;
        else this.#start(done);
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

  /** Prints the final result, if the format has one, and returns the exit code. */
  finish(): number {
    const { result } = this.#stream;
    if (result === null) return this.#failed ? exitCodes.error : exitCodes.ok;
    if (this.#options.output === "json") print(this.#io, JSON.stringify(result));
    if (this.#options.output === "text") {
      if (result.is_error) note(this.#io, stripControl(result.result));
      else print(this.#io, result.result);
    }
    const isStopped = this.#interrupted && result.terminal_reason === "interrupted";
    return (result.is_error && !isStopped) || this.#failed ? exitCodes.error : exitCodes.ok;
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
    this.#stream.outside(reason, "error");
  }

  #interrupt(): void {
    this.#interrupted = true;
    this.#conversation.cancel();
  }

  #show(message: SdkMessage): void {
    if (this.#options.output !== "stream-json") return;
    this.#program.message(message);
    if (this.#options.streamInput) this.#approvals.message(message);
  }

  async #control(id: string, request: { subtype: string }): Promise<void> {
    if (request.subtype === "interrupt") this.#interrupted = true;
    const deps = {
      conversation: this.#conversation,
      session: () => this.#session(),
      gateway: this.#deps.gateway,
      registerHooks: (hooks: unknown) => this.#hooks.register(hooks),
      instruct: (text: string) => void this.#instructions.push(text),
      forwardTexts: () => void (this.#forwardsTexts = true),
    };
    const response = await carryOut(deps, id, request);
    // Programs go on after this error, without the hooks and servers that they asked for.
    if (request.subtype === "initialize" && response.subtype === "error") this.#refusal = response.error;
    print(this.#io, JSON.stringify({ type: "control_response", response }));
  }

  #replay({ content, uuid }: UserInput): void {
    const message = { role: "user", content };
    const about = { session_id: this.#sessionId ?? "", parent_tool_use_id: null, uuid, isReplay: true };
    print(this.#io, JSON.stringify({ type: "user", message, ...about }));
  }

  async #settled({ state, text }: Outcome): Promise<void> {
    await this.#ensureBegun();
    await this.#subagents.passed();
    if (state === "command" || state === "refused" || text.startsWith("Cancelled before")) {
      this.#stream.outside(text, state === "command" ? "end_turn" : "error");
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

  #hookContext() {
    const cwd = workspaceFolder(this.#deps.target) ?? "";
    return { session_id: this.#sessionId ?? "", transcript_path: "", cwd };
  }

  #begin(sessionId: string): void {
    this.#sessionId ??= sessionId === "" ? null : sessionId;
    this.#beginning ??= agentInfo(this.#deps.gateway, this.#deps.target, sessionId, this.#io).then((info) =>
      this.#stream.begin(info),
    );
  }

  /** Applies an approval answer; a failure becomes an error response. */
  async #answer(answer: ProgramAnswer): Promise<void> {
    if (this.#approvals.endsTurn(answer)) this.#interrupted = true;
    const response = await this.#approvals.answer(answer);
    if (response === null) return;
    this.#failed = true;
    print(this.#io, JSON.stringify({ type: "control_response", response }));
  }
}
