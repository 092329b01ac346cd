// The texts a turn has sent to people with the tool `message`, from its own messages; pure.
import { parseJsonObject } from "@parley/kit";
import type { Message } from "@parley/contracts";

/** `isMessageTool` must match every name of the tool. `onlyHere`: without texts sent to other conversations. */
export function sentTexts(
  messages: readonly Message[],
  isMessageTool: (name: string) => boolean,
  onlyHere = false,
): string[] {
  const asked = new Map<string, string>();
  const said: string[] = [];
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type === "tool_call" && isMessageTool(part.name)) asked.set(part.id, textIn(part.input, onlyHere));
      if (part.type === "tool_result" && !part.isError) {
        const text = asked.get(part.id);
        if (text !== undefined && text !== "") said.push(text);
      }
    }
  }
  return said;
}

function textIn(input: string, onlyHere: boolean): string {
  const { text, content, to, chat_id: chatId } = parseJsonObject(input) ?? {};
  if (onlyHere && (to !== undefined || chatId !== undefined)) return "";
  if (typeof text === "string") return text.trim();
  return typeof content === "string" ? content.trim() : "";
}
