// Which model answers in a session: the one its policy names, or the agent's own when that one is unavailable.
import type { TurnModel } from "../model/failover.ts";
import type { Failover } from "../model/provider.ts";
import { ModelUnavailable, type ModelRegistry } from "../model/registry.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";

export interface ChoiceObserver {
  onFailover?(failover: Failover): void;
  /** The session's model is unavailable; the agent's own model answers. */
  onUnavailable?(error: ModelUnavailable): void;
}

export function chooseModel(
  models: ModelRegistry,
  { model, pinned }: Pick<TurnPolicy, "model" | "pinned">,
  observer: ChoiceObserver = {},
): TurnModel {
  const onFailover = (failover: Failover) => observer.onFailover?.(failover);
  try {
    return models.turnModel({ model, pinned, onFailover });
  } catch (error) {
    if (!(error instanceof ModelUnavailable)) throw error;
    observer.onUnavailable?.(error);
    return models.turnModel({ onFailover });
  }
}
