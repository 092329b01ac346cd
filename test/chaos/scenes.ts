// What a trial exercises in addition to plain messages: steering input, approvals, sub-agents, background commands, a conversation
// that is compacted repeatedly, callers that wait for their answers. Each scene reports what was lost or doubled.
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "@parley/contracts";
import { callers } from "../e2e/support/callers.ts";
import type { Chaos } from "./setup.ts";

interface Verdict {
  lost: string[];
  doubled: string[];
}

/** Begins immediately; resolves when everything that the scene started has ended. */
export type Scene = (chaos: Chaos, id: string, withinMs: number) => Promise<Verdict>;

export const scenes: readonly Scene[] = [
  steering,
  approval,
  waitingAgent,
  backgroundAgent,
  backgroundCommand,
  compaction,
  waitingCallers,
];

/** A second message arrives while a tool runs: it joins the turn, or becomes the next one, and is in the log once. */
async function steering(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const conversation = `steer-${id}`;
  const base = await chaos.client.post(`tool: exec {"command":"sleep 1"}\nthen\nsay: base ${id}`, {
    conversation,
    key: `${id}-base`,
    mode: "steer",
  });
  // Only input that arrives while the tool runs can join.
  for (;;) {
    const { turn } = await chaos.client.messageState(base);
    if (turn !== null && (turn.modelSteps > 0 || turn.state !== "running")) break;
    await delay(20);
  }
  const joined = await chaos.client.post(`say: joined ${id}`, { conversation, key: `${id}-joined`, mode: "steer" });
  const turns = [await chaos.client.settled(base, withinMs), await chaos.client.settled(joined, withinMs)];
  const lost = turns.at(-1)?.text === `joined ${id}` ? [] : [`joined ${id}: answered "${turns.at(-1)?.text ?? ""}"`];
  return { ...(await onceSaid(chaos, `say: joined ${id}`)), lost };
}

/** A person's approval is requested, given, and used once. */
async function approval(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const conversation = `approve-${id}`;
  const command = `touch approved-${id} && echo x >> effects/approved-${id}`;
  const messageId = await chaos.client.post(`tool: exec ${JSON.stringify({ command })}\nthen\nsay: approved ${id}`, {
    conversation,
    key: `${id}-approve`,
  });
  const deadline = Date.now() + withinMs;
  while (!(await hasEnded(chaos, messageId)) && Date.now() < deadline) {
    for (const { id: approvalId } of await pending(chaos, conversation)) {
      const body = JSON.stringify({ conversation: "approver", text: `/approve ${approvalId}` });
      const response = await chaos.client.fetch("/api/messages", { method: "POST", body }).catch(() => undefined);
      await response?.body?.cancel();
    }
    await delay(30);
  }
  const turn = await chaos.client.settled(messageId, withinMs);
  const effects = await chaos.effects(`approved-${id}`);
  const lost = turn.text === `approved ${id}` ? [] : [`approved ${id}: answered "${turn.text ?? ""}"`];
  const done = await chaos.query<{ state: string }>("SELECT state FROM parley.steps WHERE input LIKE $1", [
    `%approved-${id}%`,
  ]);
  if (done[0]?.state === "done" && effects !== 1)
    lost.push(`approved ${id}: recorded as done, happened ${effects} times`);
  return { lost, doubled: effects > 1 ? [`approved ${id}: happened ${effects} times`] : [] };
}

/** An agent waits for its sub-agent: one child, whose result is the call's result. */
async function waitingAgent(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const call = JSON.stringify({ prompt: `say: child ${id}`, mode: "wait" });
  const messageId = await chaos.client.post(`tool: sessions_spawn ${call}\nthen\nsay: parent ${id}`, {
    conversation: `wait-${id}`,
    key: `${id}-wait`,
  });
  const turn = await chaos.client.settled(messageId, withinMs);
  const lost = turn.text === `parent ${id}` ? [] : [`parent ${id}: answered "${turn.text ?? ""}"`];
  const results = await chaos.query<{ parts: string }>(
    "SELECT parts FROM parley.messages WHERE turn_id = $1 AND role = 'tool'",
    [turn.turnId],
  );
  if (!results.some(({ parts }) => parts.includes(`child ${id}`)))
    lost.push(`child ${id}: its result did not come back`);
  return { lost, doubled: await childrenBeyondOne(chaos, `wait-${id}`) };
}

/** An agent continues while its sub-agent works: the result arrives as input, once. */
async function backgroundAgent(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const conversation = `background-${id}`;
  const call = JSON.stringify({ prompt: `say: aside ${id}`, mode: "background" });
  const messageId = await chaos.client.post(`tool: sessions_spawn ${call}\nthen\nsay: went on ${id}`, {
    conversation,
    key: `${id}-background`,
  });
  const turn = await chaos.client.settled(messageId, withinMs);
  const lost: string[] = [];
  if (turn.state !== "done") lost.push(`went on ${id}: ${turn.state}`);
  const deadline = Date.now() + withinMs;
  for (;;) {
    const rows = await chaos
      .query<{ state: string }>(
        "SELECT state FROM parley.inbox WHERE session_id = $1 AND external_id LIKE 'result:%'",
        [turn.sessionId],
      )
      .catch(() => []);
    if (rows.length > 0 && rows.every(({ state }) => state === "done" || state === "dead")) {
      const doubled = rows.length > 1 ? [`aside ${id}: announced ${rows.length} times`] : [];
      return { lost, doubled: [...doubled, ...(await childrenBeyondOne(chaos, conversation))] };
    }
    if (Date.now() > deadline) return { lost: [...lost, `aside ${id}: never announced`], doubled: [] };
    await delay(50);
  }
}

/** A command continues in the background: its end, or its loss, arrives as input, once. */
async function backgroundCommand(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const name = `tail-${id}`;
  const call = JSON.stringify({ command: `echo x >> effects/${name}; sleep 0.5`, background: true });
  const messageId = await chaos.client.post(`tool: exec ${call}\nthen\nsay: launched ${id}`, {
    conversation: name,
    key: `${id}-tail`,
  });
  const turn = await chaos.client.settled(messageId, withinMs);
  // A turn that a fault delayed may receive the command's end before its own answer; it then answers the notice.
  const answersNotice = turn.text?.startsWith("answer to: ") === true && turn.text.includes(`effects/${name}`);
  const lost = turn.text === `launched ${id}` || answersNotice ? [] : [`launched ${id}: answered "${turn.text ?? ""}"`];
  const deadline = Date.now() + withinMs;
  for (;;) {
    const commands = await backgroundCommands(chaos, turn.turnId);
    if (commands?.every(({ over }) => over) === true) {
      const started = await chaos.effects(name);
      const times = commands.reduce((sum, { told }) => sum + told, 0);
      const doubled = [
        ...(started > 1 ? [`${name}: started ${started} times`] : []),
        ...(times > commands.length ? [`${name}: announced ${times} times`] : []),
      ];
      if (times < commands.length) lost.push(`${name}: its end is in no log`);
      return { lost, doubled };
    }
    if (Date.now() > deadline) return { lost: [...lost, `${name}: its end was never told`], doubled: [] };
    await delay(50);
  }
}

/**
 * The background commands of a turn: whether their exit notice was processed, and how often the log contains it. The list is empty
 * when the runner died before a command started; undefined while the database is down.
 */
async function backgroundCommands(
  chaos: Chaos,
  turnId: string,
): Promise<{ over: boolean; told: number }[] | undefined> {
  return chaos
    .query<{ over: boolean; told: number }>(
      `SELECT EXISTS (SELECT FROM parley.inbox i WHERE i.id = p.inbox_id AND i.state IN ('done', 'dead')) AS over,
         (SELECT count(*)::int FROM parley.messages m
          WHERE m.session_id = p.session_id AND m.role = 'user' AND position(p.id IN m.parts) > 0) AS told
       FROM parley.processes p WHERE p.turn_id = $1`,
      [turnId],
    )
    .catch(() => undefined);
}

/** One conversation over all trials, long enough to be compacted every few trials. */
async function compaction(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const text = `say: kept ${id}\n${"filler ".repeat(600)}`;
  const messageId = await chaos.client.post(text, { conversation: "compacted", key: `${id}-compacted` });
  const turn = await chaos.client.settled(messageId, withinMs);
  const lost = turn.text === `kept ${id}` ? [] : [`kept ${id}: answered "${turn.text ?? ""}"`];
  return { ...(await onceSaid(chaos, `say: kept ${id}`)), lost };
}

/** Callers that wait for their answers, in separate sessions or in a shared one: each gets the answer to its own input. */
async function waitingCallers(chaos: Chaos, id: string, withinMs: number): Promise<Verdict> {
  const { httpUrls, token } = chaos.cluster;
  const deadline = Date.now() + withinMs;
  const one = async (index: number): Promise<string[]> => {
    const caller = callers[index % callers.length];
    const own = `called-${index}-${id}`;
    const call = { token, text: `say: ${own}`, key: own, conversation: index < 6 ? `callers-${id}` : undefined };
    // These trials kill gateways; an equal key is the same input.
    for (let attempt = 0; ; attempt++) {
      const url = httpUrls[(index + attempt) % httpUrls.length] ?? "";
      const signal = AbortSignal.timeout(Math.max(1, deadline - Date.now()));
      const answer = await caller?.({ ...call, url, signal }).catch((error: unknown) => {
        if (Date.now() > deadline) return `no answer: ${errorMessage(error)}`;
        return undefined;
      });
      if (answer !== undefined) return answersOnly(answer, own) ? [] : [`${own}: answered "${answer.slice(0, 120)}"`];
      await delay(50);
    }
  };
  const lost = await Promise.all(Array.from({ length: 12 }, (_, index) => one(index)));
  return { lost: lost.flat(), doubled: [] };
}

/** Whether the answer contains the text of this caller and of no other. */
function answersOnly(answer: string, own: string): boolean {
  const found = new Set(answer.match(/called-\d+-[0-9a-f]{8}/g));
  return found.size === 1 && found.has(own);
}

async function hasEnded(chaos: Chaos, messageId: string): Promise<boolean> {
  const { turn } = await chaos.client.messageState(messageId);
  return turn !== null && turn.state !== "running";
}

async function pending(chaos: Chaos, conversation: string): Promise<{ id: string }[]> {
  return chaos
    .query<{ id: string }>(
      `SELECT a.id FROM parley.approvals a JOIN parley.sessions s ON s.id = a.session_id
       WHERE a.state = 'pending' AND s.key LIKE $1`,
      [`%${conversation}`],
    )
    .catch(() => []);
}

async function onceSaid(chaos: Chaos, words: string): Promise<Verdict> {
  const rows = await chaos.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM parley.messages WHERE role = 'user' AND parts LIKE $1",
    [`%${words}%`],
  );
  const times = rows[0]?.n ?? 0;
  if (times === 1) return { lost: [], doubled: [] };
  return times === 0
    ? { lost: [`"${words}" is in no log`], doubled: [] }
    : { lost: [], doubled: [`"${words}" is in the log ${times} times`] };
}

async function childrenBeyondOne(chaos: Chaos, conversation: string): Promise<string[]> {
  const rows = await chaos.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM parley.sessions c JOIN parley.sessions p ON p.id = c.parent_id WHERE p.key LIKE $1`,
    [`%${conversation}`],
  );
  const children = rows[0]?.n ?? 0;
  return children > 1 ? [`${conversation}: started ${children} sub-agents for one call`] : [];
}
