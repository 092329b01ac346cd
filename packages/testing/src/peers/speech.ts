// A strict fake of a speech service with OpenAI's format: it accepts and refuses the same requests as the real service, and its
// audio begins with the magic bytes of the requested format.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

const formats = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const;

/** Limits and names are those of the service's reference. */
const SpeechRequest = z.strictObject({
  model: z.enum(["tts-1", "tts-1-hd", "gpt-4o-mini-tts"]),
  input: z.string().min(1).max(4_096),
  voice: z.enum(["alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse"]),
  response_format: z.enum(formats).default("mp3"),
  speed: z.number().min(0.25).max(4).optional(),
});
export type SpeechOrder = z.infer<typeof SpeechRequest>;

export interface SpeechPeer {
  /** The base URL, with `/v1`. */
  url: string;
  key: string;
  /** The requests that were answered with audio, in order. */
  synthesized: readonly SpeechOrder[];
  /** The reasons of refused requests. */
  refusals: readonly string[];
  /** Statuses for the next requests. */
  failNext(...statuses: number[]): void;
  /** The audio of a text. */
  soundOf(text: string): Buffer;
  close(): Promise<void>;
}

export async function startSpeechPeer(): Promise<SpeechPeer> {
  const key = "sk-speech-test";
  const synthesized: SpeechOrder[] = [];
  const refusals: string[] = [];
  const faults: number[] = [];
  const server = createServer((request, response) => {
    const refuse = (status: number, message: string) => {
      refusals.push(message);
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
    };
    void (async () => {
      const body = Buffer.concat(await request.toArray()).toString("utf8");
      const fault = faults.shift();
      if (fault !== undefined) return response.writeHead(fault, { "content-type": "application/json" }).end("{}");
      if (request.method !== "POST" || request.url !== "/v1/audio/speech") return refuse(404, "not found");
      if (request.headers.authorization !== `Bearer ${key}`) return refuse(401, "wrong key");
      const order = SpeechRequest.safeParse(jsonOf(body));
      if (!order.success) return refuse(400, z.prettifyError(order.error));
      synthesized.push(order.data);
      return response.writeHead(200, { "content-type": "application/octet-stream" }).end(soundOf(order.data.input));
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    key,
    synthesized,
    refusals,
    failNext: (...statuses) => void faults.push(...statuses),
    soundOf,
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The first page of an Ogg stream with Opus, followed by the text, so that no two texts have equal audio. */
function soundOf(text: string): Buffer {
  return Buffer.concat([
    Buffer.from("OggS"),
    Buffer.alloc(24),
    Buffer.from("OpusHead"),
    Buffer.alloc(16),
    Buffer.from(text),
  ]);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
