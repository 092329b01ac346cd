// The texts a turn has sent to people with the tool `message`, from its own messages; pure.
import { parseJsonObject } from "@parley/kit";
import type { Message } from "@parley/contracts";

/** `isMessageTool` must match every name of the tool. `onlyHere`: without texts sent to other conversations. */
export function sentTexts(
  messages: readonly Message[],
  isMessageTool: (name: string) => boolean,
  onlyHere = false,
): string[] {
  const pendingTexts = new Map<string, string>();
  const sent: string[] = [];
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type === "tool_call" && isMessageTool(part.name))
        pendingTexts.set(part.id, textIn(part.input, onlyHere));
      if (part.type === "tool_result" && !part.isError) {
        const text = pendingTexts.get(part.id);
        if (text !== undefined && text !== "") sent.push(text);
      }
    }
  }
  return sent;
}

function textIn(input: string, onlyHere: boolean): string {
  const { text, content, to, chat_id: chatId } = parseJsonObject(input) ?? {};
  if (onlyHere && (to !== undefined || chatId !== undefined)) return "";
  if (typeof text === "string") return text.trim();
  return typeof content === "string" ? content.trim() : "";
}
