// A Claude model's capabilities as reported by the models API, so that requests contain only supported fields.
import type Anthropic from "@anthropic-ai/sdk";
import { APIError } from "@anthropic-ai/sdk";
import type { Effort } from "@parley/contracts";
import { efforts } from "../effort.ts";
import type { ModelSize } from "../provider.ts";

/** What a model supports. */
export interface Capabilities {
  adaptiveThinking: boolean;
  /** The type of thinking to request so that the model does not think; null when it has none or this is unknown. */
  thinkingOff: "disabled" | "between_tools" | null;
  efforts: readonly Effort[];
  images: boolean;
  pdfs: boolean;
  size: ModelSize;
  /** A remark for people who ask which model answers, e.g. that it is deprecated; null without one. */
  note: string | null;
}

/** Assumed when the API does not report capabilities: what every endpoint of this format supports. */
export const unknownCapabilities: Capabilities = {
  adaptiveThinking: false,
  thinkingOff: null,
  efforts: [],
  images: true,
  pdfs: true,
  size: { contextTokens: null, maxOutputTokens: null },
  note: null,
};

/**
 * Requests the capabilities of a model. Throws when the API does not answer the request. For a rejected key it returns
 * `unknownCapabilities` with a note, because a retry would not help.
 */
export async function fetchCapabilities(client: Anthropic, model: string, signal: AbortSignal): Promise<Capabilities> {
  try {
    return capabilitiesOf(await client.models.retrieve(model, undefined, { signal }));
  } catch (error) {
    if (!(error instanceof APIError)) throw error;
    const status = (error.status as number | undefined) ?? 0;
    if (status !== 401 && status !== 403) throw error;
    return { ...unknownCapabilities, note: "the API rejected ANTHROPIC_API_KEY; check the key" };
  }
}

function capabilitiesOf(info: Anthropic.ModelInfo): Capabilities {
  // A proxy in front of the API may omit any of these fields.
  const reported: Partial<Anthropic.ModelCapabilities> = info.capabilities ?? {};
  const { effort } = reported;
  const thinking: Partial<Anthropic.ThinkingTypes> = reported.thinking?.types ?? {};
  const off = (["disabled", "between_tools"] as const).find((type) => thinking[type]?.supported === true);
  return {
    adaptiveThinking: thinking.adaptive?.supported === true,
    thinkingOff: off ?? null,
    efforts: efforts.filter((level) => effort?.supported === true && effort[level]?.supported === true),
    images: reported.image_input?.supported !== false,
    pdfs: reported.pdf_input?.supported !== false,
    size: { contextTokens: info.max_input_tokens ?? null, maxOutputTokens: info.max_tokens ?? null },
    note: info.lifecycle === "deprecated" ? `${info.id} is deprecated and will be retired` : null,
  };
}
