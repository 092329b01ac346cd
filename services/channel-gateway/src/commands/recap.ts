// Where a conversation was left: what was asked last, and what was answered. Pure.
import { textOf, type Message } from "@parley/contracts";
import { oneLine } from "../words.ts";

const maxCharacters = 300;

/** Two lines at most; none where nothing was said. Notes of the loop and what tools brought are no part of it. */
export function recap(messages: readonly Message[]): string[] {
  const asked = messages.findLast(({ role, from }) => role === "user" && from !== undefined);
  const answered = messages.findLast(({ role, parts }) => role === "assistant" && textOf(parts).trim() !== "");
  const line = (who: string, message: Message | undefined) => {
    const text = message === undefined ? "" : oneLine(textOf(message.parts), maxCharacters);
    return text === "" ? [] : [`${who}: ${text}`];
  };
  const question = line(`Last from ${asked?.from?.contact.name ?? asked?.from?.contact.id ?? "you"}`, asked);
  // An answer to something before it would be read as one to it.
  const behind = answered !== undefined && answered.seq > (asked?.seq ?? 0);
  return [...question, ...(behind ? line("My answer", answered) : question.length === 0 ? [] : ["Not answered yet."])];
}
