// What a request of an OpenAI client left in its session.
import type { ApiClient } from "@parley/testing";
import { z } from "zod";

const Message = z.looseObject({ sessionId: z.string() });
const Messages = z.object({
  messages: z.array(
    z.object({
      role: z.string(),
      parts: z.array(
        z.looseObject({ type: z.string(), text: z.string().optional(), mediaType: z.string().optional() }),
      ),
    }),
  ),
});

/** The session of an answer, by the id of the completion or response. */
export async function sessionOf(client: ApiClient, id: string): Promise<string> {
  const response = await client.fetch(`/api/messages/${id.replace(/^(?:chatcmpl-|resp_)/, "")}`);
  return Message.parse(await response.json()).sessionId;
}

/** The parts of the messages that people sent in a session. */
export async function saidIn(client: ApiClient, sessionId: string) {
  const response = await client.fetch(`/api/sessions/${sessionId}/messages`);
  const { messages } = Messages.parse(await response.json());
  return messages.filter(({ role }) => role === "user").map(({ parts }) => parts);
}

/** A picture of one pixel. */
export const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
