// Sends the message at the position of a claimed outbox row: prepares its content, and sends it or replaces the turn's preview with it.
import { fetchBlob, type Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import {
  errorMessage,
  sizeText,
  WireError,
  type Attachment,
  type InputOf,
  type OutboxRow,
  type store,
} from "@parley/contracts";
import type { SendingAdapter, OutboundFile, OutboundPart, SendOutcome } from "../channels/channel.ts";
import { AnswerParts } from "../channels/text/parts.ts";
import type { RenderedText } from "../channels/text/render.ts";
import { typedCommands } from "../channels/text/typed-commands.ts";
import type { Previews } from "./previews.ts";

const defaultSendTimeoutMs = 10_000;
/** Sending a file takes longer; a send and its settlement still fit into the claim (outbound.ts). */
const sendFileTimeoutMs = 20_000;
/** Pause before an attachment is requested again after the store failed to return it. */
const fileRetryMs = 2_000;
/** Pause before a note is repeated whose outcome is unknown. */
const noteRetryMs = 5_000;
/** Pause before an edit is repeated whose outcome is unknown. */
const editRetryMs = 1_000;

/** The outcome of one message, and where the next one begins. */
export type PartOutcome = InputOf<typeof store.outboxSettle>["outcome"];

type PreparedPart = Pick<OutboundPart, "text" | "file" | "files" | "actions"> & {
  next: number | null;
  /** The message says how to get the rest of the text, which begins there. */
  heldAt?: number;
};

/** A crashed sender had begun to send the message: it may have arrived, so it is not sent again. */
const interrupted: SendOutcome = { state: "unknown", reason: "the sender crashed while sending" };

export class RowSender {
  readonly #deps: { bus: Bus; log: Logger };
  readonly #adapter: SendingAdapter;
  readonly #previews: Previews | undefined;
  readonly #parts: AnswerParts;

  constructor(deps: { bus: Bus; log: Logger }, adapter: SendingAdapter, previews?: Previews) {
    this.#deps = deps;
    this.#adapter = adapter;
    this.#previews = previews;
    this.#parts = new AnswerParts(adapter.capabilities.text);
  }

  /** Sends the message at the row's position. */
  async send(row: OutboxRow): Promise<PartOutcome> {
    const { replaces, turnId, position = 0 } = row;
    if (replaces !== undefined && position === 0) {
      if (turnId !== null) await this.#previews?.settled(turnId, row.address.conversation);
      if (row.text === "") return this.#remove(row, replaces);
    }
    const prepared = await this.#prepare(row);
    if ("state" in prepared) return prepared;
    const { next, heldAt, ...content } = prepared;
    if (heldAt !== undefined) return this.#endPage(row, content, heldAt);
    const { actions } = row;
    if (next === null && actions !== undefined && this.#adapter.capabilities.actions) content.actions = actions;
    if (next === null && row.files !== undefined) {
      const files = await this.#filesOf(row, row.files);
      if ("state" in files) return files;
      content.files = files;
    }
    const outcome =
      replaces !== undefined && position === 0 && content.text !== null
        ? await this.#replace(row, replaces, content.text)
        : row.interrupted === true
          ? interrupted
          : await this.#sendPart(row, content);
    if (next === null) return outcome;
    if (outcome.state === "sent") return { ...outcome, state: "part", position: next };
    return outcome.state === "unknown" ? { ...outcome, state: "doubtful", position: next } : outcome;
  }

  /** Ends a page. The note may be sent twice, but the rest of the text is never lost. */
  async #endPage(row: OutboxRow, content: Omit<PreparedPart, "next">, heldAt: number): Promise<PartOutcome> {
    const idempotencyKey = `${row.idempotencyKey}-more`;
    const outcome = await this.#sendPart({ ...row, idempotencyKey }, content);
    if (outcome.state === "unknown") return { state: "retry", afterMs: noteRetryMs, reason: outcome.reason };
    return outcome.state === "sent" ? { ...outcome, heldAt } : outcome;
  }

  /** Replaces the preview with the first message of the text. An edit may be repeated, so its outcome is never unknown. */
  async #replace(row: OutboxRow, messageId: string, text: RenderedText): Promise<PartOutcome> {
    const outcome = await this.#bounded(row, async (signal) =>
      this.#adapter.edit?.(row.address, messageId, text, signal),
    );
    if (outcome.state === "unknown") return { state: "retry", afterMs: editRetryMs, reason: outcome.reason };
    if (outcome.state === "dropped")
      return { state: "retry", afterMs: 0, reason: outcome.reason, withoutPreview: true };
    return outcome.state === "sent" ? { state: "sent", providerMessageId: messageId } : outcome;
  }

  /** Deletes a preview that no text replaces. */
  async #remove(row: OutboxRow, messageId: string): Promise<PartOutcome> {
    const outcome = await this.#bounded(row, async (signal) => this.#adapter.remove?.(row.address, messageId, signal));
    if (outcome.state === "unknown") return { state: "retry", afterMs: editRetryMs, reason: outcome.reason };
    return outcome.state === "sent" ? { state: "sent", providerMessageId: null } : outcome;
  }

  async #sendPart(row: OutboxRow, content: Omit<PreparedPart, "next">): Promise<SendOutcome> {
    const { replyToId: _, ...conversation } = row.address;
    const part = {
      address: (row.position ?? 0) === 0 ? row.address : conversation,
      ...content,
      idempotencyKey: row.idempotencyKey,
      attempts: row.attempts,
    };
    return this.#bounded(row, (signal) => this.#adapter.send(part, signal));
  }

  /** An outcome within the timeout, even if the adapter ignores the signal or throws. */
  async #bounded(
    row: OutboxRow,
    call: (signal: AbortSignal) => Promise<SendOutcome | undefined>,
  ): Promise<SendOutcome> {
    const { sendTimeoutMs = defaultSendTimeoutMs } = this.#adapter.capabilities;
    const withinMs = Math.min(
      row.attachment === null && row.files === undefined ? sendTimeoutMs : sendFileTimeoutMs,
      sendFileTimeoutMs,
    );
    const timeout = AbortSignal.timeout(withinMs);
    const late = Promise.withResolvers<SendOutcome>();
    timeout.addEventListener("abort", () =>
      late.resolve({ state: "unknown", reason: `no answer within ${withinMs / 1_000} s` }),
    );
    try {
      const outcome = await Promise.race([call(timeout), late.promise]);
      return outcome ?? { state: "dropped", reason: "the adapter cannot do this" };
    } catch (error) {
      const { channel, account } = this.#adapter;
      this.#deps.log.error({ err: error, channel, account, outboxId: row.outboxId }, "send failed: the adapter threw");
      return { state: "unknown", reason: "the adapter threw while sending" };
    }
  }

  /** Returns the message for the adapter and the position of the next one, or an outcome when the content is not available. */
  async #prepare(row: OutboxRow): Promise<PreparedPart | SendOutcome> {
    const { attachment } = row;
    // A text with actions is Parley's own and names commands.
    const prefix = row.actions === undefined ? undefined : this.#adapter.capabilities.commandPrefix;
    if (attachment === null) return this.#textAt(row, typedCommands(row.text, prefix));
    const { name, bytes } = attachment;
    if (!this.#adapter.capabilities.files) {
      return this.#textAt(row, `[file: ${name}, ${sizeText(bytes)}; this channel cannot send files]`);
    }
    const file = await this.#contentOf(attachment);
    return "state" in file ? file : { text: null, file, next: null };
  }

  /** The files of a text. One whose content is lost is left out, so that the others and the text arrive. */
  async #filesOf({ outboxId }: OutboxRow, attachments: readonly Attachment[]): Promise<OutboundFile[] | SendOutcome> {
    const files: OutboundFile[] = [];
    for (const attachment of attachments) {
      const file = await this.#contentOf(attachment);
      if (!("state" in file)) files.push(file);
      else if (file.state === "retry") return file;
      else this.#deps.log.error({ outboxId, file: attachment.name, ...file }, "file not sent: its content is lost");
    }
    return files;
  }

  async #contentOf({ name, mediaType, sha256 }: Attachment): Promise<OutboundFile | SendOutcome> {
    try {
      return { name, mediaType, content: await fetchBlob(this.#deps.bus, sha256) };
    } catch (error) {
      if (WireError.is(error, "NOT_FOUND", "INTERNAL")) return { state: "dropped", reason: error.message };
      const reason = errorMessage(error);
      return {
        state: "retry",
        afterMs: fileRetryMs,
        reason: `the file could not be fetched from the store: ${reason}`,
      };
    }
  }

  #textAt({ outboxId, address, position = 0, parts = 0 }: OutboxRow, text: string): PreparedPart | SendOutcome {
    const { messagesPerPage = Number.POSITIVE_INFINITY, commandPrefix = "/" } = this.#adapter.capabilities;
    const part = this.#parts.at(outboxId, text, position, this.#adapter.maxLength?.(address));
    if (part !== null && part.next !== null && (parts + 1) % messagesPerPage === 0) {
      const note = `[${text.length - position} more characters: ${commandPrefix}more]`;
      return { text: { text: note, plain: note, ranges: [] }, next: null, heldAt: position };
    }
    if (part !== null) return { text: part.rendered, next: part.next };
    // Nothing is left of a text whose earlier messages were sent, for example after the rendering changed with an upgrade.
    return position === 0 ? { state: "dropped", reason: "empty text" } : { state: "sent", providerMessageId: null };
  }
}
