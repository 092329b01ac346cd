// When a conversation is compacted; pure.
import type { CompactionSettings } from "@parley/contracts";

/** Why it is compacted: the setting that was reached, or who asked. */
export type CompactionTrigger = "share" | "tokens" | "turns" | "messages" | "overflow" | "demand" | "idle";

/**
 * Who asks. `check`: the loop, before each model call; `overflow`: the provider found the prompt too long (once a call, then
 * `check`); `demand`: a person; `idle`: the clock, between turns.
 */
export type CompactionCause = "check" | "overflow" | "demand" | "idle";

export interface Measured {
  settings: CompactionSettings;
  /** Tokens that messages may fill: the window without system prompt, tools and answer. */
  usableTokens: number;
  /** Tokens of system prompt and tools. */
  overheadTokens: number;
  /** Tokens of the messages shown. */
  tokens: number;
  /** Messages shown, without what stands in for others. */
  messageCount: number;
  /** Finished turns since the last compaction. */
  turnCount: number;
  /** How long nothing has happened, in milliseconds. */
  idleMs: number;
}

/** Tokens of messages at which their size alone is a reason to compact; the usable window when no setting says less. */
export function levelTokens({
  settings,
  usableTokens,
  overheadTokens,
}: Pick<Measured, "settings" | "usableTokens" | "overheadTokens">): number {
  return Math.min(
    usableTokens,
    settings.trigger_share > 0 ? settings.trigger_share * usableTokens : Number.POSITIVE_INFINITY,
    settings.trigger_tokens > 0 ? Math.max(1, settings.trigger_tokens - overheadTokens) : Number.POSITIVE_INFINITY,
  );
}

/** Every reason there is, the most pressing first. */
export function triggers(cause: CompactionCause, measured: Measured): CompactionTrigger[] {
  const { settings, tokens } = measured;
  switch (cause) {
    case "overflow":
    case "demand":
      return [cause];
    case "idle": {
      const due =
        settings.idle_minutes > 0 &&
        measured.idleMs >= settings.idle_minutes * 60_000 &&
        tokens >= levelTokens(measured) / 2;
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
