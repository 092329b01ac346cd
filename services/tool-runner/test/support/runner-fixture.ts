// The real environment of a tool-runner: NATS with its permissions, PostgreSQL and the store. The test plays agent-core and the
// gateway.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Bus } from "@parley/bus";
import type { RunningService } from "@parley/chassis";
import {
  leaderChanged,
  store,
  toolCall,
  type Grant,
  type OutputOf,
  type Part,
  type ToolCallRequest,
  type ToolClass,
  type ToolStep,
} from "@parley/contracts";
import {
  createTestSigner,
  type Cleanup,
  startStoreStack,
  temporaryFolder,
  testBaseConfig,
  type StoreStack,
} from "@parley/testing";
import { readConfig, type Config } from "../../src/config.ts";
import { start, type Overrides } from "../../src/service.ts";

interface PlannedCall {
  tool: string;
  class: ToolClass;
  input?: unknown;
  timeoutMs?: number;
  maxResultBytes?: number;
}

export interface RunnerFixture {
  cleanup: Cleanup;
  stack: StoreStack;
  core: Bus;
  readonly epoch: number;
  /** Starts a new epoch; with `announce`, publishes it. */
  takeOver(announce: boolean): Promise<number>;
  /** Creates a turn with these pending tool calls, in a new session or the named one. */
  plan(
    calls: readonly PlannedCall[],
    said?: { sessionKey?: string; text?: string; rights?: Partial<Grant>; attached?: Extract<Part, { type: "blob" }> },
  ): Promise<ToolCallRequest[]>;
  /** Ends a turn. */
  finish(turnId: string): Promise<void>;
  call(request: ToolCallRequest, timeoutMs?: number): Promise<OutputOf<typeof toolCall>>;
  /** The step as stored. */
  step(request: ToolCallRequest): Promise<ToolStep>;
  config(replica: string, env?: Record<string, string>): Promise<Config>;
  /** A tool-runner in this process. */
  runner(replica: string, overrides?: Overrides, env?: Record<string, string>): Promise<RunningService>;
}

/** `storeEnv`: extra environment variables of the store. */
export async function openRunnerFixture(
  cleanup: Cleanup,
  options: { storeEnv?: Record<string, string> } = {},
): Promise<RunnerFixture> {
  const stack = await startStoreStack(cleanup, options);
  const [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
  const workspace = join(await temporaryFolder(cleanup), "workspace");
  const signer = createTestSigner();
  let epoch = 0;
  const takeOver = async (announce: boolean) => {
    const { grantKey } = signer;
    ({ epoch } = await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test", grantKey }));
    if (announce) core.publish(leaderChanged, { epoch, holder: "test" });
    return epoch;
  };
  await takeOver(false);
  const config = async (replica: string, env: Record<string, string> = {}) => {
    const all = { PARLEY_WORKSPACE: workspace, PARLEY_EXEC_ISOLATION: "none", PARLEY_DRAIN_MS: "4000", ...env };
    return readConfig(all, testBaseConfig(stack.nats, "tool-runner", { ...all, PARLEY_REPLICA: replica }));
  };
  return {
    cleanup,
    stack,
    core,
    get epoch() {
      return epoch;
    },
    takeOver,
    plan: async (calls, { sessionKey = randomUUID(), text = "do it", rights = {}, attached } = {}) => {
      const { sessionId } = await gateway.request(store.inboxPut, {
        message: {
          channel: "irc",
          account: "main",
          externalId: randomUUID(),
          conversation: "#test",
          contact: { id: "7" },
          role: "owner",
          origin: "user",
          parts: [{ type: "text", text }, ...(attached === undefined ? [] : [attached])],
          replyTo: { channel: "irc", account: "main", conversation: "#test" },
        },
        sessionKey,
      });
      const fence = () => ({ opId: randomUUID(), epoch });
      const claimed = await core.request(store.turnClaim, { ...fence(), sessionId, knownSeq: 0, maxClaims: 5 });
      if (claimed.status !== "started") throw new Error(`the turn is ${claimed.status}`);
      const { turnId, nextStep } = claimed.turn;
      const toolCalls = calls.map((call) => ({
        callId: `call_${randomUUID()}`,
        tool: call.tool,
        class: call.class,
        input: JSON.stringify(call.input ?? {}),
      }));
      await core.request(store.stepCommit, {
        ...fence(),
        turnId,
        n: nextStep,
        model: "test",
        stopReason: "tool_use",
        usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
        parts: toolCalls.map(({ callId, tool, input }) => ({
          type: "tool_call" as const,
          id: callId,
          name: tool,
          input,
        })),
        results: 0,
        toolCalls,
        outgoing: [],
        finish: null,
      });
      return toolCalls.map((call, index) => ({
        epoch,
        sessionId,
        turnId,
        n: nextStep + 1 + index,
        grant: signer.sign({ epoch, sessionId, turnId, n: nextStep + 1 + index, ...rights }),
        timeoutMs: calls[index]?.timeoutMs ?? 60_000,
        maxResultBytes: calls[index]?.maxResultBytes ?? 100_000,
        ...call,
      }));
    },
    finish: async (turnId) => {
      await core.request(store.turnFinish, {
        opId: randomUUID(),
        epoch,
        turnId,
        parts: [],
        model: null,
        unsettled: "Interrupted.",
        outgoing: [],
        finish: { state: "done", exitReason: "end_turn", text: "done" },
      });
    },
    call: (request, timeoutMs = 60_000) =>
      core.request(toolCall, request, { params: { tool: request.tool }, timeoutMs, attemptMs: timeoutMs }),
    step: async (request) => {
      const { steps } = await core.request(store.turnGet, { turnId: request.turnId });
      const step = steps.find(({ n }) => n === request.n);
      if (step === undefined) throw new Error("no such step");
      return step;
    },
    config,
    runner: async (replica, overrides = {}, env = {}) => {
      const running = await start(await config(replica, env), overrides);
      cleanup.add(() => running.close());
      return running;
    },
  };
}
