// Finds the context window of a model on an OpenAI-compatible server. vLLM and gateways report it in the list of
// models; llama.cpp and Ollama have their own endpoints outside of `/v1`; OpenAI does not report it. The window that a
// server uses takes precedence over the one the model was trained with.
import { z } from "zod";

/**
 * A request to the server: returns parsed JSON, or undefined without a result. Throws when the server is unavailable.
 */
export type Probe = (path: string, body?: unknown) => Promise<unknown>;

const tokens = z.number().int().positive().optional().catch(undefined);
const Model = z.object({
  id: z.string(),
  /** vLLM. */
  max_model_len: tokens,
  /** LiteLLM and other gateways. */
  max_input_tokens: tokens,
  /** OpenRouter. */
  context_length: tokens,
  /** LM Studio: the loaded context. */
  loaded_context_length: tokens,
  max_context_length: tokens,
  /** Together and Groq. */
  context_window: tokens,
  /** llama.cpp: the trained context. */
  meta: z.object({ n_ctx_train: tokens }).nullish().catch(null),
  max_output_tokens: tokens,
});
const Models = z.object({ data: z.array(Model) });
const Props = z.object({ default_generation_settings: z.object({ n_ctx: z.number().int().positive() }) });
const Shown = z.object({
  model_info: z.record(z.string(), z.unknown()).optional(),
  /** Ollama's model file, one setting per line. */
  parameters: z.string().optional(),
});

export interface ProbeResult {
  contextTokens: number | null;
  maxOutputTokens: number | null;
}

/** `ask.base` resolves paths below `/v1`, `ask.root` at the server's root. */
export async function findWindow(model: string, ask: { base: Probe; root: Probe }): Promise<ProbeResult> {
  const listed = Models.safeParse(await ask.base("models"));
  const models = listed.success ? listed.data.data : [];
  const entry = models.find(({ id }) => id === model || id === `${model}:latest`) ?? only(models);
  const maxOutputTokens = entry?.max_output_tokens ?? null;
  const served =
    entry?.max_model_len ??
    entry?.loaded_context_length ??
    entry?.max_input_tokens ??
    entry?.context_length ??
    entry?.context_window;
  if (served !== undefined) return { contextTokens: served, maxOutputTokens };
  const own = (await fromLlamaCpp(ask.root)) ?? (await fromOllama(model, ask.root));
  const trained = entry?.max_context_length ?? entry?.meta?.n_ctx_train;
  return { contextTokens: own ?? trained ?? null, maxOutputTokens };
}

async function fromLlamaCpp(root: Probe): Promise<number | undefined> {
  const props = Props.safeParse(await root("props"));
  return props.success ? props.data.default_generation_settings.n_ctx : undefined;
}

/** The model file's setting is what the server uses; the model's own value is only the upper limit. */
async function fromOllama(model: string, root: Probe): Promise<number | undefined> {
  const shown = Shown.safeParse(await root("api/show", { model }));
  if (!shown.success) return undefined;
  const set = /^\s*num_ctx\s+(\d+)/m.exec(shown.data.parameters ?? "")?.[1];
  if (set !== undefined) return Number(set);
  const [, length] =
    Object.entries(shown.data.model_info ?? {}).find(([name]) => name.endsWith(".context_length")) ?? [];
  return typeof length === "number" ? length : undefined;
}

function only<T>(list: readonly T[]): T | undefined {
  return list.length === 1 ? list[0] : undefined;
}
