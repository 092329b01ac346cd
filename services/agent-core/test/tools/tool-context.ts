// Creates an owner's turn with an open call of a local tool on a real store, and the context to run it in.
import { randomUUID } from "node:crypto";
import type { Bus } from "@parley/bus";
import { createLogger } from "@parley/chassis";
import { ParleySettingsSchema, store, type ToolClass, type ToolResult, type ToolStep } from "@parley/contracts";
import { type Cleanup, startStoreStack } from "@parley/testing";
import type { LocalContext, LocalOutcome } from "../../src/tools/local-tool.ts";
import { LeaderStore } from "../../src/store-client/leader-store.ts";
import { resolvePolicy } from "../../src/policy/turn-policy.ts";
import { settle } from "../../src/turn/dispatch-call.ts";

export interface ToolContextFixture {
  gateway: Bus;
  core: Bus;
  settings: LocalContext["settings"];
  /** Starts a turn with one call. `account`: that of the turn's conversation, by default a new one. */
  call(tool: string, toolClass: ToolClass, account?: string): Promise<LocalContext>;
  /** Settles a local call in the store as the loop does. Undefined if another party will settle it. */
  end(context: LocalContext, outcome: LocalOutcome): Promise<ToolResult | undefined>;
  /** The texts sent through an account since the previous call. */
  outgoing(account: string): Promise<string[]>;
}

/** Configured accounts, in addition to the account of the turn's own conversation. */
const telegram = { token_env: "PARLEY_CHANNEL_TELEGRAM" };
const channels = {
  telegram: { default: telegram, main: telegram },
  irc: { net: { host: "irc.example", nick: "parley" } },
  signal: { home: { number: "+491700000001" } },
};

const log = createLogger({ service: "test", replica: "test", level: "silent" });

export async function openToolContext(cleanup: Cleanup): Promise<ToolContextFixture> {
  const stack = await startStoreStack(cleanup);
  const [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
  const { epoch } = await core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "test" });
  const leaderStore = new LeaderStore(core, epoch, (reason) => {
    throw new Error(reason);
  });
  const settings = ParleySettingsSchema.parse({ channels, context: { built_in_skills: true } });
  return {
    gateway,
    core,
    settings,
    call: async (tool, toolClass, account = randomUUID()) => {
      const at = { channel: "irc", account, conversation: "owner" };
      const { sessionId } = await gateway.request(store.inboxPut, {
        sessionKey: randomUUID(),
        message: {
          ...at,
          externalId: randomUUID(),
          contact: { id: "7" },
          role: "owner",
          origin: "user",
          parts: [{ type: "text", text: "do it" }],
          replyTo: at,
        },
      });
      const fence = () => ({ opId: randomUUID(), epoch });
      const claimed = await core.request(store.turnClaim, { ...fence(), sessionId, knownSeq: 0, maxClaims: 5 });
      if (claimed.status !== "started") throw new Error(`the turn is ${claimed.status}`);
      const { turn } = claimed;
      const callId = randomUUID();
      await core.request(store.stepCommit, {
        ...fence(),
        turnId: turn.turnId,
        n: turn.nextStep,
        model: "test",
        stopReason: "tool_use",
        usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 },
        parts: [{ type: "tool_call", id: callId, name: tool, input: "{}" }],
        results: 0,
        toolCalls: [{ callId, tool, class: toolClass, input: "{}" }],
        outgoing: [],
        finish: null,
      });
      const { steps } = await core.request(store.turnGet, { turnId: turn.turnId });
      const step = steps.find((each): each is ToolStep => each.callId === callId);
      if (step === undefined) throw new Error("no such step");
      const session = { view: null, overrides: {}, profile: null, parentId: null, depth: 0, prefixHash: null };
      return {
        bus: core,
        log,
        leaderStore,
        settings,
        policy: resolvePolicy(settings, session),
        turn,
        step,
        name: tool,
        tainted: false,
        audience: "owner",
        publish: () => undefined,
      };
    },
    end: async (context, outcome) => {
      if (outcome.status === "waiting") return undefined;
      if (outcome.status === "settled") return outcome.result;
      const { outgoing = [], sent = [] } = outcome;
      return settle(context, context.step, outcome.status, outcome.content, { outgoing, sent });
    },
    outgoing: async (account) => {
      const owner = { replica: "test", incarnation: randomUUID() };
      const texts: string[] = [];
      // Each claim returns at most one row per conversation.
      for (;;) {
        const claim = {
          opId: randomUUID(),
          owner,
          channel: "irc",
          account,
          deduplicates: false,
          limit: 100,
          claimMs: 60_000,
        };
        const { rows } = await gateway.request(store.outboxClaim, claim);
        if (rows.length === 0) return texts;
        for (const { outboxId, text } of rows) {
          texts.push(text);
          const outcome = { state: "sent", providerMessageId: null } as const;
          await gateway.request(store.outboxSettle, { opId: randomUUID(), outboxId, owner, outcome });
        }
      }
    },
  };
}
