// The acknowledgement of a webhook with a file of 20 MB by one of four gateways. An account that its platform limits: `npm run chaos -- --storm`.
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import { startBotApi } from "../bot-api.ts";
import { percentile } from "../measure.ts";
import type { Row } from "../row.ts";

/** One every half second: the files of earlier ones are fetched meanwhile. */
const updates = 120;
const updateEveryMs = 500;
const secret = "bench-secret";

/** `start`: a cluster with four gateways and these settings. */
export async function channels(
  home: string,
  start: (settings: string, env: Readonly<Record<string, string>>) => Promise<Cluster>,
): Promise<Row[]> {
  const api = await startBotApi(randomBytes(20_000_000));
  const settings = join(home, "channels.toml");
  await writeFile(
    settings,
    `[channels.telegram.files]\nmode = "webhook"\ntoken_env = "PARLEY_CHANNEL_BOT"\nwebhook_secret_env = "PARLEY_CHANNEL_HOOK"\napi_root = "${api.url}"\nowners = ["42"]\n`,
  );
  const cluster = await start(settings, { PARLEY_CHANNEL_BOT: "7000001:AABenchmark", PARLEY_CHANNEL_HOOK: secret });
  try {
    // Both measure the same machine.
    const without = await acknowledge(cluster, false);
    return [without, await acknowledge(cluster, true)];
  } finally {
    await cluster.stop();
    api.close();
  }
}

/** Updates with or without a file, one after another. */
async function acknowledge(cluster: Cluster, hasFile: boolean): Promise<Row> {
  const document = { file_id: "f", file_unique_id: "u", file_size: 20_000_000 };
  const durations: number[] = [];
  let refused = 0;
  for (let update = 1; update <= updates; update++) {
    const begin = performance.now();
    const response = await fetch(`${cluster.httpUrl}/channels/telegram/files/webhook`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": secret },
      body: JSON.stringify({
        update_id: hasFile ? updates + update : update,
        message: {
          message_id: update,
          date: Math.floor(Date.now() / 1_000),
          from: { id: 42, is_bot: false, first_name: "Ann" },
          chat: { id: 42, type: "private" },
          ...(hasFile ? { document } : { text: "hello" }),
        },
      }),
    });
    durations.push(performance.now() - begin);
    if (response.status !== 200) refused += 1;
    await delay(updateEveryMs);
  }
  const p99 = percentile(durations, 0.99);
  return {
    what: `${updates} webhook updates ${hasFile ? "with a file of 20 MB" : "without a file"}, acknowledged`,
    measured: `p50 ${percentile(durations, 0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${refused} refused`,
    target: "p99 ≤ 250 ms",
    isMet: p99 <= 250 && refused === 0,
  };
}
