// Claude as a provider that loads Anthropic's SDK with its first call: agents with other models need neither its 27 MB of memory nor
// its 250 modules.
import type { AnthropicOptions, CountingProvider } from "./anthropic.ts";

/** The same provider as `createAnthropic`. Its `note` is null until the SDK is loaded. */
export function createAnthropicOnDemand(options: AnthropicOptions): CountingProvider {
  let created: CountingProvider | undefined;
  let creating: Promise<CountingProvider> | undefined;
  const load = async () => {
    const { createAnthropic } = await import("./anthropic.ts");
    return (created = createAnthropic(options));
  };
  const provider = () => (creating ??= load());
  return {
    name: options.name ?? "anthropic",
    model: options.model,
    priceList: options.name === undefined ? "official" : "unknown",
    note: () => created?.note() ?? null,
    prepare: async () => (await provider()).prepare(),
    stream: async (...call) => (await provider()).stream(...call),
    size: async (signal) => (await provider()).size(signal),
    countTokens: async (request, signal) => (await provider()).countTokens(request, signal),
  };
}
