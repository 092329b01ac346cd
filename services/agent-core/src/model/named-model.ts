// The model that a request of another service names.
import { WireError } from "@parley/contracts";
import type { ModelProvider } from "./provider.ts";
import { ModelUnavailable, type ModelRegistry } from "./registry.ts";

/** Throws INVALID_INPUT for an unavailable model; the message names what is missing. */
export function namedModel(models: ModelRegistry, name: string): ModelProvider {
  try {
    return models.modelFor(name);
  } catch (error) {
    if (!(error instanceof ModelUnavailable)) throw error;
    throw new WireError("INVALID_INPUT", error.message, { cause: error });
  }
}
