// One turn at a time: from the HTTP request to the reply, without the model's own time.
import { post, turn, type Gateway } from "../client.ts";
import type { FakeModel } from "../fake-model.ts";
import type { Row } from "../row.ts";
import { percentile, sample } from "../measure.ts";
import type { Baselines } from "./baselines.ts";

const maxBodyBytes = 12 * 1024;
const kib = (text: string) => `${(Buffer.byteLength(text) / 1024).toFixed(1)} KiB`;

export async function turns(gateway: Gateway, model: FakeModel, base: Baselines): Promise<Row[]> {
  const floor = 2 * base.commitMs + 2 * base.roundTripMs;
  const chat = conversations();
  await turn(gateway, "empty", "hello");
  const emptyBody = model.lastBody;
  await sample(200, 1, () => turn(gateway, chat(), "hello"));
  await sample(30, 1, () => turn(gateway, chat(), "rounds: 5"));

  const plain = await sample(1_000, 1, () => turn(gateway, chat(), "hello"));
  const p50 = percentile(plain, 0.5) - base.modelCallMs;
  const p99 = percentile(plain, 0.99) - base.modelCallMs;

  // The model's time to read a request of this size; it is not subtracted above.
  const body = model.lastBody;
  const send = async () => (await fetch(`${model.url}/v1/messages`, { method: "POST", body })).text();
  await sample(50, 1, send);
  const realCall = percentile(await sample(300, 1, send), 0.5);

  const firstBytes: number[] = [];
  await sample(300, 1, async () => firstBytes.push(await turn(gateway, chat(), "hello", true)));
  const first = percentile(firstBytes, 0.5) - base.modelCallMs;

  const one = percentile(await sample(300, 1, () => turn(gateway, chat(), "rounds: 1")), 0.5);
  const five = percentile(await sample(150, 1, () => turn(gateway, chat(), "rounds: 5")), 0.5) - 6 * base.modelCallMs;
  const round = one - percentile(plain, 0.5) - base.modelCallMs;

  const stops: number[] = [];
  for (let count = 0; count < 20; count++) stops.push(await stopOnce(gateway, model, count));

  const ms = (value: number) => `${value.toFixed(1)} ms`;
  return [
    {
      what: "turn without tools, one at a time",
      measured: `p50 ${ms(p50)}, p99 ${ms(p99)} (${(p50 / floor).toFixed(1)} × 2 commits + 2 round trips)`,
      target: "p50 ≤ 6 ms, p99 ≤ 18 ms",
      isMet: p50 <= 6 && p99 <= 18,
    },
    {
      what: "first token, over the model's own",
      measured: `p50 ${ms(first)}`,
      target: "p50 ≤ 3 ms added",
      isMet: first <= 3,
    },
    {
      what: "baseline: a bare call with the body of such a turn, p50",
      measured: `${realCall.toFixed(2)} ms`,
      target: "",
      isMet: undefined,
    },
    {
      what: "request body of an empty turn",
      measured: `${kib(emptyBody)} (after up to twenty turns ${kib(body)})`,
      target: "≤ 12 KiB",
      isMet: Buffer.byteLength(emptyBody) <= maxBodyBytes,
    },
    { what: "one tool round", measured: `p50 ${ms(round)}`, target: "p50 ≤ 4 ms", isMet: round <= 4 },
    { what: "turn with five tool rounds", measured: `p50 ${ms(five)}`, target: "≤ 25 ms", isMet: five <= 25 },
    {
      what: "/stop → the model's stream is aborted",
      measured: `p50 ${ms(percentile(stops, 0.5))}, max ${ms(percentile(stops, 1))}`,
      target: "≤ 50 ms",
      isMet: percentile(stops, 0.95) <= 50,
    },
  ];
}

/** Starts a new conversation every twenty turns, so that the prompt, and the model's time to read it, stay those of a chat. */
export function conversations(prefix = "chat"): () => string {
  let count = 0;
  return () => `${prefix}-${Math.floor(count++ / 20)}`;
}

async function stopOnce(gateway: Gateway, model: FakeModel, count: number): Promise<number> {
  const conversation = `stop-${count}`;
  const cut = model.nextCut();
  const streaming = turn(gateway, conversation, "endless", true).catch(() => undefined);
  await post(gateway, "/api/messages", { conversation: `${conversation}-wait`, text: "hello" });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const start = performance.now();
  await post(gateway, "/api/messages", { conversation, text: "/stop" });
  const cutAt = await cut;
  await streaming;
  return cutAt - start;
}
