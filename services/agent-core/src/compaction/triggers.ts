// Decides when a conversation is compacted; pure.
import type { CompactionSettings } from "@parley/contracts";

/** Why a conversation is compacted: the limit that was reached, or the cause. */
export type CompactionTrigger = "share" | "tokens" | "turns" | "messages" | "overflow" | "demand" | "idle";

/**
 * Who requests compaction. `check`: the loop, before each model call; `overflow`: the provider rejected the prompt as too long (once
 * per call, then `check`); `demand`: a person; `idle`: a timer, between turns.
 */
export type CompactionCause = "check" | "overflow" | "demand" | "idle";

export interface ContextUsage {
  settings: CompactionSettings;
  /** Tokens available to messages: the window without system prompt, tools and answer. */
  usableTokens: number;
  /** Tokens of system prompt and tools. */
  overheadTokens: number;
  /** Tokens of the messages in the view. */
  tokens: number;
  /** Number of messages in the view, without placeholders. */
  messageCount: number;
  /** Finished turns since the last compaction. */
  turnCount: number;
  /** Milliseconds since the last activity. */
  idleMs: number;
}

/** Message tokens at which size alone triggers compaction; at most the usable window. */
export function triggerTokens({
  settings,
  usableTokens,
  overheadTokens,
}: Pick<ContextUsage, "settings" | "usableTokens" | "overheadTokens">): number {
  return Math.min(
    usableTokens,
    settings.trigger_share > 0 ? settings.trigger_share * usableTokens : Number.POSITIVE_INFINITY,
    settings.trigger_tokens > 0 ? Math.max(1, settings.trigger_tokens - overheadTokens) : Number.POSITIVE_INFINITY,
  );
}

/** All triggers that apply, the most urgent first. */
export function triggers(cause: CompactionCause, measured: ContextUsage): CompactionTrigger[] {
  const { settings, tokens } = measured;
  switch (cause) {
    case "overflow":
    case "demand":
      return [cause];
    case "idle": {
      const due =
        settings.idle_minutes > 0 &&
        measured.idleMs >= settings.idle_minutes * 60_000 &&
        tokens >= triggerTokens(measured) / 2;
      return due ? ["idle"] : [];
    }
    case "check": {
      const reached: Record<"share" | "tokens" | "turns" | "messages", boolean> = {
        share: settings.trigger_share > 0 && tokens >= settings.trigger_share * measured.usableTokens,
        tokens: settings.trigger_tokens > 0 && tokens + measured.overheadTokens >= settings.trigger_tokens,
        turns: settings.trigger_turns > 0 && measured.turnCount >= settings.trigger_turns,
        messages: settings.max_messages > 0 && measured.messageCount > settings.max_messages,
      };
      return (["share", "tokens", "turns", "messages"] as const).filter((trigger) => reached[trigger]);
    }
    default:
      return cause satisfies never;
  }
}
