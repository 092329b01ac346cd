// One trial: arm a fault, send the messages, strike, wait until every message is settled and the cluster is healthy,
// then compare the database, the fake model and the fake platform.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Fault } from "./faults.ts";
import { z } from "zod";
import { scenes } from "./scenes.ts";
import type { Chaos } from "./setup.ts";

export interface TrialResult {
  fault: string;
  /** False: the fault never happened, because the input that it needs came at another time. */
  fired: boolean;
  /** Accepted messages without an outcome. */
  lost: string[];
  /** Answers or side effects that happened twice. */
  doubled: string[];
  /** Answers whose delivery is marked `unknown`: the documented window. */
  unknown: number;
  /** Milliseconds from the end of the old leadership to the next claimed turn; undefined when the leader did not change. */
  takeoverMs: number | undefined;
  durationMs: number;
}

/** Time limit until everything is settled. */
const settleMs = 90_000;

const Status = z.object({ replicas: z.array(z.object({ ready: z.boolean() })) });

/** The only person from whom the fake accepts messages. */
const person = 1;

export async function runTrial(chaos: Chaos, fault: Fault): Promise<TrialResult> {
  const id = randomUUID().slice(0, 8);
  const begin = performance.now();
  const epochBefore = await currentEpoch(chaos);
  await fault.arm?.(chaos);

  // A tool with a side effect, two messages in a row, and a person on an external channel.
  const effect = `tool: exec {"command":"echo x >> effects/${id}"}\nthen\nsay: effect ${id}`;
  const posts = [
    chaos.client.post(effect, { conversation: `effect-${id}`, key: `${id}-effect` }),
    chaos.client.post(`say: first ${id}`, { conversation: `pair-${id}`, key: `${id}-first` }),
  ];
  chaos.telegram.say(`tool: ls {}\nthen\nsay: telegram ${id}`, { from: person });
  const played = Promise.all(scenes.map((scene) => scene(chaos, id, settleMs)));
  // Awaited below; an earlier failure must not count as an unhandled rejection.
  played.catch(() => undefined);
  const struckAt = Date.now();
  await Promise.all([fault.strike?.(chaos), delay(5)]);
  const [effectId, firstId] = await Promise.all(posts);
  const secondId = await chaos.client.post(`say: second ${id}`, { conversation: `pair-${id}`, key: `${id}-second` });
  const stopped = fault.stops === true ? await stopATurn(chaos, id) : undefined;

  const turns = await Promise.all(
    [effectId, firstId, secondId].map((each) => chaos.client.settled(each ?? "", settleMs)),
  );
  const telegram = await telegramOutcome(chaos, id);
  if (stopped !== undefined) await chaos.client.settled(stopped, settleMs);
  const verdicts = await played;
  await whole(chaos);
  const armed = await chaos.cluster.armed();

  const lost = verdicts.flatMap((verdict) => verdict.lost);
  const doubled = verdicts.flatMap((verdict) => verdict.doubled);
  const expected = [`effect ${id}`, `first ${id}`, `second ${id}`];
  for (const [index, turn] of turns.entries()) {
    if (turn.text === null) lost.push(`${expected[index]}: no outcome`);
    else if (turn.text !== expected[index] && fault.name !== "none")
      lost.push(`${expected[index]}: answered "${turn.text.slice(0, 80)}"`);
  }
  const sent = chaos.telegram.sent.filter((message) => message.text.includes(`telegram ${id}`)).length;
  if (telegram === "unanswered") lost.push(`telegram ${id}: neither sent nor marked`);
  if (telegram === "sent" && sent === 0) lost.push(`telegram ${id}: marked sent, never seen`);
  if (sent > 1) doubled.push(`telegram ${id}: sent ${sent} times`);
  const effects = await chaos.effects(id);
  const effectState = await effectStep(chaos, id);
  if (effects > 1) doubled.push(`effect ${id}: happened ${effects} times`);
  if (effectState === "done" && effects !== 1) lost.push(`effect ${id}: recorded as done, happened ${effects} times`);
  const order = await answerOrder(chaos, id);
  if (order !== `first ${id},second ${id}`) lost.push(`pair ${id}: answered in the order ${order}`);
  return {
    fault: fault.name,
    fired: armed.length === 0,
    lost,
    doubled,
    unknown: telegram === "unknown" ? 1 : 0,
    takeoverMs: await takeoverMs(chaos, epochBefore, struckAt),
    durationMs: performance.now() - begin,
  };
}

/** The next trial begins with a healthy cluster: every replica is ready and answers. */
async function whole(chaos: Chaos): Promise<void> {
  const replicas = chaos.cluster.replicas();
  for (const replica of replicas) await chaos.cluster.whenReady(replica.service, replica.number);
  for (;;) {
    const response = await chaos.client.fetch("/api/status").catch(() => undefined);
    const status = Status.safeParse(await response?.json().catch(() => undefined));
    if (status.success && status.data.replicas.filter((each) => each.ready).length === replicas.length) return;
    await delay(50);
  }
}

async function currentEpoch(chaos: Chaos): Promise<number> {
  const rows = await chaos.query<{ epoch: string }>("SELECT epoch FROM parley.leadership");
  return Number(rows[0]?.epoch ?? 0);
}

/** Starts a long turn and stops it. */
async function stopATurn(chaos: Chaos, id: string): Promise<string> {
  const conversation = `stop-${id}`;
  const messageId = await chaos.client.post(`tool: exec {"command":"sleep 20"}`, { conversation, key: `${id}-stop` });
  for (;;) {
    const { turn } = await chaos.client.messageState(messageId);
    if (turn !== null && turn.modelSteps > 0) break;
    await delay(20);
  }
  for (;;) {
    const response = await chaos.client
      .fetch("/api/messages", { method: "POST", body: JSON.stringify({ conversation, text: "/stop" }) })
      .catch(() => undefined);
    await response?.body?.cancel();
    if (response?.status === 200) return messageId;
    await delay(50);
  }
}

/** Waits until the person's answer is sent, or its delivery has another final state. */
async function telegramOutcome(chaos: Chaos, id: string): Promise<"sent" | "unknown" | "dropped" | "unanswered"> {
  const deadline = Date.now() + settleMs;
  for (;;) {
    const rows = await chaos
      .query<{ state: string }>("SELECT state FROM parley.outbox WHERE body LIKE $1", [`%telegram ${id}%`])
      .catch(() => []);
    const state = rows[0]?.state;
    if (state === "sent" || state === "unknown" || state === "dropped") return state;
    if (Date.now() > deadline) return "unanswered";
    await delay(50);
  }
}

async function effectStep(chaos: Chaos, id: string): Promise<string | undefined> {
  const rows = await chaos.query<{ state: string }>(
    "SELECT state FROM parley.steps WHERE kind = 'tool' AND input LIKE $1",
    [`%effects/${id}%`],
  );
  return rows[0]?.state;
}

async function answerOrder(chaos: Chaos, id: string): Promise<string> {
  const rows = await chaos.query<{ answer: string }>(
    `SELECT t.answer FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id WHERE s.key LIKE $1 ORDER BY t.finished_at`,
    [`%pair-${id}`],
  );
  return rows.map((row) => JSON.parse(row.answer) as string).join();
}

/** From the strike (or the end of the old epoch, for armed points) to the first turn claimed under a new epoch. */
async function takeoverMs(chaos: Chaos, epochBefore: number, struckAt: number): Promise<number | undefined> {
  const rows = await chaos.query<{ first: Date | null; last_old: Date | null }>(
    `SELECT (SELECT min(claimed_at) FROM parley.turns WHERE epoch = $1) AS first,
            (SELECT max(created_at) FROM parley.steps WHERE epoch < $1) AS last_old`,
    [epochBefore + 1],
  );
  const { first, last_old: lastOld } = rows[0] ?? {};
  if (first === null || first === undefined) return undefined;
  const from = Math.max(struckAt, lastOld?.getTime() ?? 0);
  return Math.max(0, first.getTime() - from);
}
