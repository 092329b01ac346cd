// How much of its model's window a conversation fills: cheap checks before a compaction is planned.
import type { CompactionSettings, Usage } from "@parley/contracts";
import { promptTokens } from "../model/prices.ts";
import type { ModelProvider } from "../model/provider.ts";
import type { ModelRegistry } from "../model/registry.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";
import { prefixTokens, type Prefix } from "../session/prefix.ts";
import type { SessionView } from "../session/view.ts";

type Windows = Pick<ModelRegistry, "windowOf">;

/** A conversation and the model that answers in it. */
interface FilledWindow {
  view: SessionView;
  prefix: Prefix;
  policy: TurnPolicy;
  provider: ModelProvider;
}

/** Fill above which a plan is computed: the estimate is rough and must not be late. */
export const checkFill = 0.8;
/** Fill above which compacting ahead of time is tried after a turn. */
export const nearlyDueFill = 0.7;

/** Tokens that the conversation may have, next to the answer and the prompt's prefix. */
export async function roomOf(
  models: Windows,
  { prefix, policy, provider }: Pick<FilledWindow, "prefix" | "policy" | "provider">,
): Promise<{ usableTokens: number; overheadTokens: number }> {
  const window = await models.windowOf(provider);
  const overheadTokens = prefixTokens(prefix);
  return { usableTokens: Math.max(1_000, window.tokens - policy.maxOutputTokens - overheadTokens), overheadTokens };
}

/** Whether a conversation has reached a trigger of compaction with its newest reply. `usage`: of that reply; null: not reported. */
export async function isDueAfter(
  usage: Usage | null,
  { models, settings }: { models: Windows; settings: CompactionSettings },
  conversation: FilledWindow,
): Promise<boolean> {
  const { usableTokens, overheadTokens } = await roomOf(models, conversation);
  const tokens =
    usage === null ? roughTokens(conversation.view) : promptTokens(usage) + usage.outputTokens - overheadTokens;
  return fillOf(settings, tokens, usableTokens, overheadTokens) >= 1;
}

/** Estimate from the characters of a conversation. */
export function roughTokens(view: SessionView): number {
  return (view.chars / 3 + view.messages.length * 4) * view.tokenRatio;
}

/** How close a conversation of `tokens` is to its trigger; 1 = reached. */
export function fillOf(
  settings: CompactionSettings,
  tokens: number,
  usableTokens: number,
  overheadTokens: number,
): number {
  if (settings.trigger_turns > 0 || settings.max_messages > 0) return 1;
  const share = settings.trigger_share > 0 ? settings.trigger_share * usableTokens : usableTokens;
  const fixed = settings.trigger_tokens > 0 ? settings.trigger_tokens - overheadTokens : share;
  return tokens / Math.max(1, Math.min(share, fixed));
}
