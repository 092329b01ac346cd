// A recap of a conversation: the last message and its answer. Pure.
import { textOf, type Message, type SessionSummary } from "@parley/contracts";
import { oneLine } from "@parley/kit";

const maxCharacters = 300;

/** Returns at most two lines; none for an empty conversation. Notes of the loop and tool results are left out. */
export function recap(messages: readonly Message[]): string[] {
  const lastInput = messages.findLast(({ role, from }) => role === "user" && from !== undefined);
  const answered = messages.findLast(({ role, parts }) => role === "assistant" && textOf(parts).trim() !== "");
  const line = (who: string, message: Message | undefined) => {
    const text = message === undefined ? "" : oneLine(textOf(message.parts), maxCharacters);
    return text === "" ? [] : [`${who}: ${text}`];
  };
  const question = line(
    `Last from ${lastInput?.from?.contact.name ?? lastInput?.from?.contact.id ?? "you"}`,
    lastInput,
  );
  // An answer older than the last message belongs to an earlier one.
  const behind = answered !== undefined && answered.seq > (lastInput?.seq ?? 0);
  return [...question, ...(behind ? line("My answer", answered) : question.length === 0 ? [] : ["Not answered yet."])];
}

/** Time of the last message (ISO 8601): `updatedAt` of a session that was just resumed is the time of the resumption. */
export function lastMessageAt({ createdAt }: Pick<SessionSummary, "createdAt">, messages: readonly Message[]): string {
  return messages.at(-1)?.createdAt ?? createdAt;
}
