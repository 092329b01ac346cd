// Handles inbound messages: authorizes the sender, chooses the session, executes commands, and stores messages. The platform may be
// acknowledged only after the store's commit. Independent of platforms and of HTTP.
import type { Logger } from "@parley/chassis";
import { mainSessionKey, store, type InboundMessage, type InputOf, type OutputOf } from "@parley/contracts";
import { nameUuid, omitUndefined } from "@parley/kit";
import { followTurn, type StoredMessage, type PendingTurn, type TurnListener } from "../live/follow-turn.ts";
import { awaitingApprovalText, SessionBusyError } from "../operations/session-busy.ts";
import type {
  AcceptResult,
  ActionResult,
  InboundAction,
  InboundChange,
  InboundDraft,
  Position,
} from "../channels/channel.ts";
import { OperationError, type OperationDeps, type Speaker } from "../operations/operation.ts";
import { runCommand } from "../operations/registry.ts";
import { parseInput, type CommandLine, type ParsedInput } from "../operations/parse-input.ts";
import { accessRefusal } from "../operations/access.ts";
import { answerApproval } from "../operations/answer-approval.ts";
import { typedCommands } from "../channels/text/typed-commands.ts";
import { accessOf, authorizeSender, type AccessPolicy, type Admitted } from "./authorize.ts";
import { fileTimes, isPendingFile, partsOfFiles } from "./attachments.ts";
import { applyChange } from "./changes.ts";
import { contextOf, keepAsContext } from "./group-context.ts";
import { messageOfDraft } from "./draft-message.ts";
import { InboxWriter, leaseOf, limitsOf, type InboxWriterDeps } from "./inbox-writer.ts";
import { messageOf, MessageTooLargeError, type AuthorizedInput } from "./authorized-input.ts";
import { OverLimitError } from "./over-limit.ts";
import { conversationKey, isShared, requestedModeOf, sessionKeyOf, type ConversationRef } from "./route.ts";
import { SessionService } from "../operations/session-service.ts";
import type { TurnIndicators } from "../delivery/turn-indicators.ts";

export interface InboundDeps extends InboxWriterDeps {
  log: Logger;
  channels: OperationDeps["channels"];
  originOf: OperationDeps["originOf"];
  checkSettings: OperationDeps["checkSettings"];
}

/** The answer to a command is dropped when it cannot be sent within this time. */
const commandAnswerExpiresMs = 10 * 60 * 1_000;

export class InboundHandler {
  /** Session operations, shared by commands, HTTP and WebSocket. */
  readonly acts: SessionService;
  /** What operations need. */
  readonly operations: OperationDeps;
  readonly #deps: InboundDeps;
  readonly #writer: InboxWriter;

  constructor(deps: InboundDeps) {
    this.#deps = deps;
    this.#writer = new InboxWriter(deps);
    this.acts = new SessionService(deps);
    const { bus, sessions, settings, live, channels, originOf, checkSettings } = deps;
    this.operations = {
      bus,
      sessions,
      settings,
      originOf,
      checkSettings,
      acts: this.acts,
      cancel: (what) => this.cancel(what),
      say: (message, route) => this.#say(message, route),
      look: () => live.refresh(),
      channels,
    };
  }

  /** Accepts a draft from an adapter. Rejects when nothing was stored. `literal`: a message in any case, without commands. */
  async accept(
    policy: AccessPolicy,
    draft: InboundDraft,
    position?: Position,
    literal?: Extract<ParsedInput, { kind: "message" }>,
  ): Promise<AcceptResult> {
    const { channel, account } = policy;
    const sender = await authorizeSender(this.#deps, policy, draft);
    if (sender === null) {
      const routeFor = (admitted: Admitted) =>
        this.#routeFor(policy, { channel, account, ...draft, ...admitted }, admitted);
      await keepAsContext(this.#deps.bus, policy, draft, routeFor);
      return "ignored";
    }
    const { role } = sender;

    const from = { channel, account, ...draft, role };
    const { profile } = policy.people;
    const sessionKey = this.#routeFor(policy, from, sender);
    const shared = isShared(sessionKey, from);
    const ref = `${channel}:${account}:${draft.externalId}`;
    // Outside of any turn, once per inbound message.
    const answer = (text: string) =>
      this.#deps.bus.request(store.outboxPut, {
        opId: nameUuid(`answer:${ref}`),
        outgoing: {
          address: draft.replyTo,
          text: typedCommands(text, policy.commandPrefix),
          expiresInMs: commandAnswerExpiresMs,
        },
      });
    // A forwarded message is never a command, because the sender did not write it.
    const isOwnText = literal === undefined && draft.forwarded === undefined;
    const parsed: ParsedInput = isOwnText
      ? parseInput(draft.text, policy.commandPrefix)
      : (literal ?? { kind: "message", text: draft.text });
    const speaker = { ...from, route: this.#commandRoute(policy, from, sender), ref };
    const result =
      parsed.kind === "command"
        ? await this.runCommand(parsed.command, speaker)
        : role === "owner" && isOwnText
          ? await answerApproval(this.operations, draft.text, speaker)
          : undefined;
    if (result !== undefined) {
      if (result !== "") await answer(result);
      this.#deps.events.inbound(channel, "command");
      return "executed";
    }
    if (parsed.kind === "command") return "executed";
    const asked = "mode" in parsed ? parsed.mode : undefined;
    const mode = requestedModeOf(asked, { shared, album: draft.album, setting: this.#deps.settings.queue.mode });
    const files = await this.#partsOf(draft);
    const pending = files.filter(isPendingFile);
    const message = messageOfDraft({ channel, account, role }, draft, parsed.text, files, mode);
    try {
      const lease = leaseOf(position);
      const store = () =>
        this.#writer.put({
          message,
          sessionKey,
          ...lease,
          ...contextOf(policy, draft),
          ...limitsOf(this.#deps.settings, message),
          ...(pending.length === 0 ? {} : { files: fileTimes }),
          ...(profile === undefined ? {} : { profile }),
        });
      const { inboxId, duplicate, heldUpBy } = await this.#putAndShow(policy.indicators, draft, sessionKey, store);
      if (pending.length > 0 && !duplicate) policy.fetchFiles?.(inboxId, pending);
      if (heldUpBy !== undefined && role === "owner" && mode !== "interrupt")
        await answer(awaitingApprovalText(heldUpBy));
      return duplicate ? "duplicate" : "stored";
    } catch (error) {
      if (error instanceof OverLimitError) return "ignored";
      if (error instanceof SessionBusyError) {
        await answer(error.message);
        return "ignored";
      }
      if (!(error instanceof MessageTooLargeError)) throw error;
      this.#deps.events.inbound(channel, "refused", "too_large");
      await answer(`Message not accepted: ${error.message}.`);
      return "ignored";
    }
  }

  /** Applies a change of an earlier message. Rejects when the store is unavailable; applying it again has no further effect. */
  async change(policy: AccessPolicy, change: InboundChange, position?: Position): Promise<AcceptResult> {
    const about = await applyChange({ ...this.#deps, cancel: (turn) => this.cancel(turn) }, policy, change);
    if (about === undefined) return "ignored";
    // An edit or a reaction runs no command and answers no question.
    const { draft, ...mode } = about;
    return this.accept(policy, draft, position, { kind: "message", text: draft.text, ...mode });
  }

  /**
   * Runs the input of a pressed button with the rights of the person who pressed it. Any other input than a command is stored as their
   * message. Rejects when nothing was stored.
   */
  async act(policy: AccessPolicy, action: InboundAction, position?: Position): Promise<ActionResult> {
    const { channel, account } = policy;
    const { input, ...draft } = action;
    const access = await accessOf(this.#deps, policy, { ...draft, addressed: true });
    this.#deps.events.inbound(channel, "action");
    if (access.verdict !== "let_in") return { text: "You may not decide this.", done: false };
    const parsed = parseInput(input);
    if (parsed.kind === "message") {
      const result = await this.accept(policy, { ...draft, addressed: true, text: input }, position);
      return { text: result === "duplicate" ? "Already answered." : input, done: result !== "ignored" };
    }
    const from = { channel, account, ...draft, role: access.role };
    const ref = `${channel}:${account}:${draft.externalId}`;
    const speaker = { ...from, route: this.#commandRoute(policy, from, access), ref };
    const refusal = accessRefusal(parsed.command.name, parsed.command.rest.split(/\s+/), speaker);
    const text = refusal ?? (await this.runCommand(parsed.command, speaker));
    return { text: typedCommands(text, policy.commandPrefix), done: refusal === undefined };
  }

  #routeFor({ people }: AccessPolicy, from: ConversationRef, { route }: Pick<Admitted, "route">): string {
    const { session } = this.#deps.settings;
    return people.profile === undefined ? (route ?? sessionKeyOf(session, from)) : conversationKey(from);
  }

  /** Commands of other people never act on the owner's thread. */
  #commandRoute(policy: AccessPolicy, from: ConversationRef, sender: Admitted): string {
    return from.role === "owner" ? this.#routeFor(policy, from, sender) : (sender.route ?? conversationKey(from));
  }

  /** The route of the session that this input belongs to. */
  sessionKeyOf(
    input: Pick<AuthorizedInput, "channel" | "account" | "conversation" | "role" | "thread" | "route" | "profile">,
  ): string {
    if (input.route !== undefined) return input.route;
    const { session } = this.#deps.settings;
    const { thread } = input;
    if (input.profile !== undefined) return conversationKey(input);
    if (thread === "main") return mainSessionKey;
    const isOwn = thread === "named" || thread === "separate" || (thread === "own" && session.synchronous === "own");
    return isOwn ? conversationKey(input) : sessionKeyOf(session, { ...input, direct: true });
  }

  /** The speaker of a command that arrives as this input. */
  speakerOf(input: AuthorizedInput): Speaker {
    const { channel, account, conversation, contact, role, replyTo, access } = input;
    const ref = `${channel}:${account}:${input.externalId}`;
    return {
      route: this.sessionKeyOf(input),
      role,
      channel,
      account,
      conversation,
      contact,
      replyTo,
      direct: true,
      ref,
      ...(access === undefined ? {} : { access }),
    };
  }

  /** Stores a message. Throws SessionBusyError, OverLimitError, IdempotencyKeyReusedError, MessageTooLargeError or the store's WireError; then nothing was stored. */
  async store(input: AuthorizedInput): Promise<StoredMessage> {
    return this.#writer.put(this.#putOf(input), input.keyed);
  }

  /** Stores a message and follows the turn that answers it. */
  async storeAndFollow(input: AuthorizedInput, signal: AbortSignal, listener?: TurnListener): Promise<PendingTurn> {
    const request = this.#putOf(input);
    return followTurn(this.#deps, request.sessionKey, () => this.#writer.put(request, input.keyed), signal, listener);
  }

  #putOf(input: AuthorizedInput): InputOf<typeof store.inboxPut> {
    const sessionKey = this.sessionKeyOf(input);
    const isCall = input.thread === "own" || input.thread === "separate";
    const singleCall = isCall && sessionKey === conversationKey(input);
    const { profile, content } = input;
    return {
      message: messageOf(input),
      sessionKey,
      ...limitsOf(this.#deps.settings, input),
      ...omitUndefined({ profile, content }),
      ...(singleCall ? { singleCall } : {}),
    };
  }

  /** Executes a command and returns the answer. Rejects when the store is unavailable. */
  runCommand(command: CommandLine, speaker: Speaker): Promise<string> {
    return runCommand(this.operations, command, speaker);
  }

  /** Stops a session's turn. The store records the cancellation first, then the leader is notified. */
  cancel(what: InputOf<typeof store.turnCancel>): Promise<OutputOf<typeof store.turnCancel>> {
    return this.#writer.cancel(what);
  }

  async #say(message: InboundMessage, sessionKey: string): Promise<void> {
    try {
      await this.#writer.put({ message, sessionKey });
    } catch (error) {
      if ([SessionBusyError, OverLimitError, MessageTooLargeError].some((refusal) => error instanceof refusal))
        throw new OperationError("conflict", (error as Error).message);
      throw error;
    }
  }

  async #putAndShow(
    indicators: TurnIndicators | undefined,
    draft: InboundDraft,
    sessionKey: string,
    store: () => Promise<StoredMessage>,
  ): Promise<StoredMessage> {
    if (indicators === undefined) return store();
    // A session that this replica does not know is looked up first, so that its events are followed from before the message is stored.
    if (this.#deps.sessions.remembered(sessionKey) === undefined) await this.#deps.sessions.find(sessionKey);
    const followed = indicators.follow(draft);
    const listener: TurnListener = { kept: () => undefined, event: (event) => followed.event(event) };
    try {
      const { kept, end } = await followTurn(this.#deps, sessionKey, store, followed.signal, listener);
      void followed.until(end);
      return kept;
    } catch (error) {
      followed.cancel();
      throw error;
    }
  }

  async #partsOf({ files = [] }: InboundDraft): Promise<InboundMessage["parts"]> {
    if (files.length === 0) return [];
    return partsOfFiles(this.#deps.bus, this.#deps.settings.attachments.max_bytes, files);
  }
}
