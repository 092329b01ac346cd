// Edits, deletions and reactions, for platforms with one call for each.
import type { ReplyAddress } from "@parley/contracts";
import type { MessageOperations, SendOutcome } from "./channel.ts";
import type { Answer, Refusal } from "./json-api.ts";
import { outcomeOfChange, type OutcomeRules } from "./outcome.ts";
import type { RenderedText } from "./text/render.ts";

/** The calls of a platform. `Message`: how its calls name a message. */
export interface OperationCalls<Message> {
  /** Null: the conversation or the id is not one of the platform. */
  messageOf: (conversation: string, messageId: string) => Message | null;
  edit: (message: Message, text: RenderedText, signal: AbortSignal) => Promise<Answer<unknown>>;
  remove: (message: Message, signal: AbortSignal) => Promise<Answer<unknown>>;
  /** Null removes the reaction. */
  react: (message: Message, reaction: string | null, signal: AbortSignal) => Promise<Answer<unknown>>;
  /** Whether a refusal means that nothing is left to do. */
  isDone: (refusal: Refusal, operation: keyof MessageOperations) => boolean;
  /** What else decides about the outcome. */
  rulesOf?: (answer: Answer<unknown>) => OutcomeRules;
}

/** `platform`: its name, for reasons. */
export function messageOperationsOf<Message>(platform: string, calls: OperationCalls<Message>): MessageOperations {
  const change = async (
    operation: keyof MessageOperations,
    { conversation }: ReplyAddress,
    messageId: string,
    call: (message: Message) => Promise<Answer<unknown>>,
  ): Promise<SendOutcome> => {
    const message = calls.messageOf(conversation, messageId);
    if (message === null) return { state: "dropped", reason: `not a ${platform} message` };
    const answer = await call(message);
    return outcomeOfChange(answer, messageId, (refusal) => calls.isDone(refusal, operation), calls.rulesOf?.(answer));
  };
  return {
    edit: (to, id, text, signal) => change("edit", to, id, (message) => calls.edit(message, text, signal)),
    remove: (to, id, signal) => change("remove", to, id, (message) => calls.remove(message, signal)),
    react: (to, id, reaction, signal) => change("react", to, id, (message) => calls.react(message, reaction, signal)),
  };
}
