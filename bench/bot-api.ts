// A Bot API for the benchmark that only counts: it accepts messages, refuses them while it is limited, and has one file, whose beginning differs.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

interface BotApi {
  url: string;
  /** When each message arrived (performance.now()), by its text. */
  readonly arrivedAtMs: ReadonlyMap<string, number>;
  /** How long after the first refusal of its pause each call began that was refused, in milliseconds. */
  readonly refusedAfterMs: readonly number[];
  readonly pauses: number;
  /** From now on, refuses for `pauseMs` after each `sendMs` in which it accepts. */
  limit(sendMs: number, pauseMs: number): void;
  close(): void;
}

/** The part of a file that differs between downloads. */
const ownBytes = 8;

export async function startBotApi(file: Uint8Array = new Uint8Array(1)): Promise<BotApi> {
  const arrivedAtMs = new Map<string, number>();
  const refusedAfterMs: number[] = [];
  let limits: { sendMs: number; pauseMs: number } | undefined;
  let acceptsUntilMs = Number.POSITIVE_INFINITY;
  let refusedSinceMs: number | undefined;
  let pauses = 0;
  let downloads = 0;

  /** Seconds that the caller must wait; 0: the call is accepted. */
  const waitSeconds = (nowMs: number): number => {
    if (limits === undefined || nowMs < acceptsUntilMs) return 0;
    refusedSinceMs ??= nowMs;
    const leftMs = refusedSinceMs + limits.pauseMs - nowMs;
    if (leftMs > 0) {
      if (nowMs === refusedSinceMs) pauses += 1;
      refusedAfterMs.push(nowMs - refusedSinceMs);
      return leftMs / 1_000;
    }
    refusedSinceMs = undefined;
    acceptsUntilMs = nowMs + limits.sendMs;
    return 0;
  };

  const server = createServer((request, response) => {
    const method = request.url?.split("/").at(-1) ?? "";
    const chunks: Buffer[] = [];
    const answer = (status: number, body: object) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (request.url?.startsWith("/file/") === true) {
        // Each download has a content of its own; the store keeps the same content once.
        response.writeHead(200).write(String(downloads++).padStart(ownBytes));
        return void response.end(file.subarray(ownBytes));
      }
      if (method === "getMe") return answer(200, { ok: true, result: { id: 1, is_bot: true, username: "bench_bot" } });
      if (method === "getFile")
        return answer(200, { ok: true, result: { file_path: "file.bin", file_size: file.length } });
      if (method !== "sendMessage") return answer(200, { ok: true, result: true });
      const nowMs = performance.now();
      const seconds = waitSeconds(nowMs);
      if (seconds > 0)
        return answer(429, { ok: false, description: "Too Many Requests", parameters: { retry_after: seconds } });
      const { text = "" } = JSON.parse(Buffer.concat(chunks).toString()) as { text?: string };
      arrivedAtMs.set(text, nowMs);
      return answer(200, { ok: true, result: { message_id: arrivedAtMs.size } });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivedAtMs,
    refusedAfterMs,
    get pauses() {
      return pauses;
    },
    limit(sendMs, pauseMs) {
      limits = { sendMs, pauseMs };
      acceptsUntilMs = performance.now() + sendMs;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
