// Channels on four gateways: the acknowledgement of a webhook with a file of 20 MB, and one account that its platform limits next to another.
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@parley/local";
import { startBotApi } from "../bot-api.ts";
import { post } from "../client.ts";
import { percentile, sample } from "../measure.ts";
import type { Row } from "../row.ts";

/** One every half second: the files of earlier ones are fetched meanwhile. */
const updates = 60;
const updateEveryMs = 500;
const texts = 1_000;
const chats = 200;
const calmTexts = 200;
const calmEveryMs = 150;
/** The storm: two seconds of sends, then three of refusals. */
const sendMs = 2_000;
const pauseMs = 3_000;
const secret = "bench-secret";

/** `start`: a cluster with four gateways and these settings. */
export async function channels(
  home: string,
  start: (settings: string, env: Readonly<Record<string, string>>) => Promise<Cluster>,
): Promise<Row[]> {
  const apis = await Promise.all([startBotApi(randomBytes(20_000_000)), startBotApi(), startBotApi(), startBotApi()]);
  const [files, busy, stormy, calm] = apis;
  const settings = join(home, "channels.toml");
  const accounts = { files, busy, stormy, calm };
  const tables = Object.entries(accounts).map(
    ([name, { url }]) =>
      `[channels.telegram.${name}]\nmode = "webhook"\ntoken_env = "PARLEY_CHANNEL_BOT"\nwebhook_secret_env = "PARLEY_CHANNEL_HOOK"\napi_root = "${url}"\nowners = ["42"]\n`,
  );
  await writeFile(settings, ['[session]\npolicy = "per_conversation"\n', ...tables].join("\n"));
  const cluster = await start(settings, { PARLEY_CHANNEL_BOT: "7000001:AABenchmark", PARLEY_CHANNEL_HOOK: secret });
  try {
    const limited = await storm(cluster, { busy, stormy, calm });
    // The files are fetched meanwhile and afterwards.
    return [...limited, await acknowledgements(cluster)];
  } finally {
    await cluster.stop();
    for (const api of apis) api.close();
  }
}

/** Updates with a file, one after another. */
async function acknowledgements(cluster: Cluster): Promise<Row> {
  const durations: number[] = [];
  let refused = 0;
  for (let update = 1; update <= updates; update++) {
    const begin = performance.now();
    const response = await fetch(`${cluster.httpUrl}/channels/telegram/files/webhook`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": secret },
      body: JSON.stringify({
        update_id: update,
        message: {
          message_id: update,
          date: Math.floor(Date.now() / 1_000),
          from: { id: 42, is_bot: false, first_name: "Ann" },
          chat: { id: 42, type: "private" },
          document: { file_id: "f", file_unique_id: "u", file_size: 20_000_000 },
        },
      }),
    });
    durations.push(performance.now() - begin);
    if (response.status !== 200) refused += 1;
    await delay(updateEveryMs);
  }
  const p99 = percentile(durations, 0.99);
  return {
    what: `${updates} webhook updates with a file of 20 MB, acknowledged`,
    measured: `p50 ${percentile(durations, 0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${refused} refused`,
    target: "p99 ≤ 250 ms",
    isMet: p99 <= 250 && refused === 0,
  };
}

type Api = Awaited<ReturnType<typeof startBotApi>>;

/** The calm account's delivery times next to a busy account, and next to one that the platform limits. */
async function storm(
  cluster: Cluster,
  { busy, stormy, calm }: Record<"busy" | "stormy" | "calm", Api>,
): Promise<Row[]> {
  const gateway = { url: cluster.httpUrl, token: cluster.token };
  const send = async (account: string, conversation: string, text: string) => {
    const { status } = await post(gateway, "/api/send", { channel: "telegram", account, conversation, text });
    if (status >= 300) throw new Error(`send: ${status}`);
  };
  const run = async (name: "busy" | "stormy", api: Api): Promise<number[]> => {
    let next = 0;
    await sample(texts, 16, async () => {
      const number = next++;
      await send(name, String(1_000 + (number % chats)), `${name} ${number}`);
    });
    if (api === stormy) stormy.limit(sendMs, pauseMs);
    const sentAtMs = new Map<string, number>();
    for (let number = 0; number < calmTexts; number++) {
      const text = `next to ${name} ${number}`;
      sentAtMs.set(text, performance.now());
      await send("calm", String(5_000 + number), text);
      await delay(calmEveryMs);
    }
    while (api.arrivedAtMs.size < texts || [...sentAtMs.keys()].some((text) => !calm.arrivedAtMs.has(text)))
      await delay(50);
    return [...sentAtMs].map(([text, atMs]) => (calm.arrivedAtMs.get(text) ?? Number.NaN) - atMs);
  };
  const quiet = percentile(await run("busy", busy), 0.95);
  const disturbed = percentile(await run("stormy", stormy), 0.95);
  const latest = Math.max(0, ...stormy.refusedAfterMs);
  return [
    {
      what: `other accounts, p95 delivery, ${texts} texts limited / not limited`,
      measured: `${disturbed.toFixed(0)} / ${quiet.toFixed(0)} ms = ${(disturbed / quiet).toFixed(2)}`,
      target: "≤ 1.2",
      isMet: disturbed <= 1.2 * quiet,
    },
    {
      what: `calls refused in ${stormy.pauses} pauses, and how late after the first`,
      measured: `${stormy.refusedAfterMs.length}, the last after ${latest.toFixed(0)} ms`,
      target: "only calls on the wire (≤ 100 ms)",
      isMet: latest <= 100,
    },
  ];
}
