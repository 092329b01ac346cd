// Starts a sub-agent: its session, its first input and the state of the requesting call, in one commit.
import { isDeepStrictEqual } from "node:util";
import {
  newId,
  priorityOf,
  WireError,
  type InputOf,
  type OutputOf,
  type Sender,
  type SessionOverrides,
  type store,
  type ToolResult,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { PoolClient } from "../../db/database.ts";
import { overridesOf, stepColumns, toolStepOf, type StepRow } from "../../db/mappers.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { enqueueNotice } from "../inbox/system-input.ts";
import { lockTurn } from "./end.ts";
import { publishReady, type ReadyHint } from "./notify.ts";
import type { Handlers } from "../handler.ts";

type Input = InputOf<typeof store.turnSpawn>;
type Output = OutputOf<typeof store.turnSpawn>;

interface ChildRow {
  profile: string | null;
  overrides: string | null;
}

interface ParentRow {
  session_id: string;
  key: string;
  profile: string | null;
  overrides: string | null;
  depth: number;
  sender: string;
}

export const spawnHandlers = {
  async turnSpawn({ database, bus }, input) {
    const wakes: ReadyHint[] = [];
    const output = await runOperation<Output>(database, input, {
      name: "spawn",
      async run(client) {
        // Lock order: the turn before its steps. The lock also serializes counting the children of one turn.
        await lockTurn(client, input.turnId, input.epoch);
        const step = await readStep(client, input);
        // A retry after a crash returns the sub-agent that this call has already started.
        const known = await client.query<{ session_id: string }>(
          "SELECT session_id FROM parley.inbox WHERE parent_turn_id = $1 AND parent_step = $2",
          [input.turnId, input.n],
        );
        if (known.rows[0] !== undefined) {
          return { result: { status: "started", sessionId: known.rows[0].session_id, step: toolStepOf(step) } };
        }
        if (step.result !== null) throw new WireError("CONFLICT", `step ${input.n} of turn ${input.turnId} is settled`);
        const parent = singleRow(
          (
            await client.query<ParentRow>(
              `SELECT t.session_id, s.key, s.profile, s.overrides, s.depth, i.sender FROM parley.turns t
               JOIN parley.sessions s ON s.id = t.session_id JOIN parley.inbox i ON i.id = t.inbox_id WHERE t.id = $1`,
              [input.turnId],
            )
          ).rows,
        );
        const refusal = await refuse(client, input, parent);
        if (refusal !== undefined) return { result: { status: "refused", reason: refusal } };
        const reuses = input.reuse === true && input.ofProgram !== true;
        const idle = input.resume ?? (reuses ? await idleChild(client, input, parent) : undefined);
        const sessionId = idle ?? (await openSession(client, input, parent));
        const afterSeq = idle === undefined ? 0 : await positionOf(client, idle);
        await configure(client, input, sessionId, parent);
        await enqueueTask(client, input, parent, sessionId);
        wakes.push({ sessionId, priority: priorityOf.user });
        const settled = await settleStep(client, input, step, sessionId);
        const result: Output = { status: "started", sessionId, step: toolStepOf(settled), afterSeq };
        return { result, memo: { sessionId, afterSeq } };
      },
      async replay(client, memo) {
        const started = memo as { sessionId: string; afterSeq?: number };
        return { status: "started", ...started, step: toolStepOf(await readStep(client, input)) };
      },
    });
    publishReady(bus, wakes);
    return output;
  },
} satisfies Partial<Handlers>;

async function readStep(client: PoolClient, { turnId, n }: Input): Promise<StepRow> {
  const { rows } = await client.query<StepRow>(
    `SELECT ${stepColumns} FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool' FOR UPDATE`,
    [turnId, n],
  );
  if (rows[0] === undefined) throw new WireError("NOT_FOUND", `turn ${turnId} has no tool step ${n}`);
  return rows[0];
}

async function refuse(client: PoolClient, input: Input, parent: ParentRow): Promise<string | undefined> {
  const busy = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM parley.sessions s WHERE s.parent_id = $1 AND (
       EXISTS (SELECT FROM parley.turns WHERE session_id = s.id AND state = 'running')
       OR EXISTS (SELECT FROM parley.inbox WHERE session_id = s.id AND state = 'queued'))`,
    [parent.session_id],
  );
  const { count } = singleRow(busy.rows);
  if (count >= input.maxChildren) {
    return `${count} sub-agents are already running, which is the limit (subagents.max_children); wait for one of them`;
  }
  if (input.resume === null) {
    const isMissing = input.ofProgram === true && definitionOf(parent, input.profile) === undefined;
    return isMissing ? `the program that defines ${input.profile} has ended` : undefined;
  }
  const { rows } = await client.query<ChildRow>(
    "SELECT profile, overrides FROM parley.sessions WHERE id::text = $1 AND parent_id = $2",
    [input.resume, parent.session_id],
  );
  if (rows[0] === undefined) return `this session has no sub-agent ${input.resume} to continue`;
  const { programAgent } = overridesOf(rows[0].overrides);
  // Its earlier messages and its prompt belong to its definition.
  return programAgent === undefined || isDeepStrictEqual(programAgent, definitionOf(parent, rows[0].profile))
    ? undefined
    : `the definition of the sub-agent ${input.resume} ended with the run of its program; start a new one`;
}

/** The definition of a sub-agent in the session of the program; undefined: the program defines none with this name. */
function definitionOf(parent: ParentRow, name: string | null): SessionOverrides["programAgent"] {
  const agents = overridesOf(parent.overrides).programAgents ?? {};
  const agent = name !== null && Object.hasOwn(agents, name) ? agents[name] : undefined;
  return agent === undefined ? undefined : { ...agent, base: parent.profile };
}

/** The newest child with the profile of the settings that has no work; undefined: none. The lock on the parent's turn keeps others from taking it. */
async function idleChild(client: PoolClient, { profile }: Input, parent: ParentRow): Promise<string | undefined> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT s.id FROM parley.sessions s WHERE s.parent_id = $1 AND s.profile = $2 AND s.status = 'active'
       AND strpos(coalesce(s.overrides, ''), '"programAgent":') = 0
       AND NOT EXISTS (SELECT FROM parley.turns WHERE session_id = s.id AND state = 'running')
       AND NOT EXISTS (SELECT FROM parley.inbox WHERE session_id = s.id AND state = 'queued')
     ORDER BY s.created_at DESC, s.id DESC LIMIT 1`,
    [parent.session_id, profile],
  );
  return rows[0]?.id;
}

async function positionOf(client: PoolClient, sessionId: string): Promise<number> {
  const { rows } = await client.query<{ seq: number }>("SELECT seq FROM parley.sessions WHERE id = $1", [sessionId]);
  return singleRow(rows).seq;
}

async function openSession(client: PoolClient, input: Input, parent: ParentRow): Promise<string> {
  const id = newId();
  await client.query(
    "INSERT INTO parley.sessions (id, key, parent_id, profile, depth, title, title_tainted) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    [
      id,
      `${parent.key}>${input.profile}:${id}`,
      parent.session_id,
      input.profile,
      parent.depth + 1,
      // PostgreSQL's text type does not allow NUL.
      input.title.replaceAll("\0", " "),
      input.tainted ?? false,
    ],
  );
  return id;
}

/**
 * With each task the sub-agent gets the parent's restrictions of that moment and its workspace; allow rules are each session's own. A sub-agent of a program
 * also gets its definition when it starts, and the program's tools with each task.
 */
async function configure(client: PoolClient, input: Input, sessionId: string, parent: ParentRow): Promise<void> {
  const { rows } = await client.query<ChildRow>(
    "SELECT profile, overrides FROM parley.sessions WHERE id = $1 FOR UPDATE",
    [sessionId],
  );
  const child = singleRow(rows);
  const ofParent = overridesOf(parent.overrides);
  const own = withRestrictionsOf(ofParent, overridesOf(child.overrides));
  const programAgent =
    own.programAgent ??
    (input.resume === null && input.ofProgram === true ? definitionOf(parent, input.profile) : undefined);
  const { programTools } = programAgent === undefined ? own : ofParent;
  const overrides = omitUndefined({ ...own, programAgent, programTools });
  const stored = Object.keys(overrides).length === 0 ? null : JSON.stringify(overrides);
  if (stored !== child.overrides)
    await client.query("UPDATE parley.sessions SET overrides = $2 WHERE id = $1", [sessionId, stored]);
}

function withRestrictionsOf(parent: SessionOverrides, child: SessionOverrides): SessionOverrides {
  const { permissionMode: _mode, deny: _deny, ask: _ask, workspace: _workspace, ...own } = child;
  const { deny, ask, workspace } = parent;
  // An agent in the mode `delegate` may only delegate; those that do the work for it may do it.
  const permissionMode = parent.permissionMode === "delegate" ? undefined : parent.permissionMode;
  return { ...own, ...omitUndefined({ permissionMode, deny, ask, workspace }) };
}

async function enqueueTask(client: PoolClient, input: Input, parent: ParentRow, sessionId: string): Promise<void> {
  const asker = JSON.parse(parent.sender) as Sender;
  const sender: Sender = {
    channel: "internal",
    account: "subagent",
    conversation: parent.key,
    contact: { id: parent.session_id, name: "parent" },
    role: asker.role,
    origin: "subagent",
    ...(input.tainted === true ? { tainted: true } : {}),
  };
  await enqueueNotice(client, {
    sessionId,
    externalId: `task:${input.turnId}:${input.n}`,
    priority: priorityOf.user,
    parts: input.parts,
    replyTo: null,
    sender,
    // Mode for the later announcement of the result; the task itself never joins another turn.
    mode: input.announce,
    trust: "subagent",
    task: input,
  });
}

async function settleStep(client: PoolClient, input: Input, step: StepRow, sessionId: string): Promise<StepRow> {
  const result: ToolResult = {
    type: "tool_result",
    id: step.call_id,
    name: step.tool,
    content: `Started sub-agent ${sessionId} (${input.profile}). Its result will arrive as a message; do not wait for it.`,
    isError: false,
    durationMs: 0,
    // The store wrote it.
    untainted: true,
  };
  const background = input.mode === "background";
  const { rows } = await client.query<StepRow>(
    `UPDATE parley.steps SET state = $3, result = $4, starts = starts + 1, started_at = now(), runner = 'agent-core', epoch = $5,
            finished_at = CASE WHEN $4::text IS NULL THEN NULL ELSE now() END
     WHERE turn_id = $1 AND n = $2 RETURNING ${stepColumns}`,
    [input.turnId, input.n, background ? "done" : "running", background ? JSON.stringify(result) : null, input.epoch],
  );
  return singleRow(rows);
}
