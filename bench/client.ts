// A light HTTP client over keep-alive connections, so that the load generator costs little compared with what is measured.
import { Agent, request } from "node:http";

export interface Gateway {
  url: string;
  token: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 512 });

/** Posts JSON. Resolves with the status, the body and the time of its first content byte. */
export function post(
  gateway: Gateway,
  path: string,
  body: object,
): Promise<{ status: number; text: string; firstByteMs: number }> {
  const payload = JSON.stringify(body);
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const outgoing = request(
      gateway.url + path,
      {
        agent,
        method: "POST",
        headers: {
          authorization: `Bearer ${gateway.token}`,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(payload),
        },
      },
      (response) => {
        let text = "";
        let firstByteMs = Number.NaN;
        response.on("data", (chunk: Buffer) => {
          text += String(chunk);
          // The first delta with text, not the first keep-alive or role chunk.
          if (Number.isNaN(firstByteMs) && text.includes('"content":"An')) firstByteMs = performance.now() - start;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, firstByteMs }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(payload);
  });
}

/** One turn over the OpenAI-compatible API. */
export async function turn(gateway: Gateway, user: string, content: string, stream = false): Promise<number> {
  const answer = await post(gateway, "/v1/chat/completions", {
    model: "parley",
    user,
    stream,
    messages: [{ role: "user", content }],
  });
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
  return answer.firstByteMs;
}
