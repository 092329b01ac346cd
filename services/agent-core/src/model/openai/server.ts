// Metadata of a server of OpenAI's format: whether key, address and model are valid, and the model's context window. vLLM and
// gateways report the window in the list of models; llama.cpp and Ollama have their own endpoints outside of `/v1`; OpenAI does
// not report it. The window that a server uses takes precedence over the one the model was trained with.
import { currentValue, type Secret } from "@parley/chassis";
import { parseJson } from "@parley/kit";
import { z } from "zod";

export interface Server {
  /** Including `/v1`. */
  baseUrl: string;
  /** With the current key. */
  headers: () => { authorization?: string };
  model: string;
  /** The environment variable with the key; undefined: none is configured. */
  keyVariable: string | undefined;
  /** Where the address is set, for messages. */
  addressSetting: string;
}

interface ServerOptions {
  baseUrl: string;
  apiKey?: Secret | undefined;
  model: string;
  keyVariable?: string | undefined;
  addressSetting?: string;
}

/** Without an `addressSetting` it is the server of the environment variables. */
export function serverOf({ baseUrl, apiKey, model, keyVariable, addressSetting }: ServerOptions): Server {
  const headers = () => (apiKey === undefined ? {} : { authorization: `Bearer ${currentValue(apiKey)}` });
  if (addressSetting !== undefined) return { baseUrl, model, headers, keyVariable, addressSetting };
  return { baseUrl, model, headers, keyVariable: "OPENAI_API_KEY", addressSetting: "OPENAI_BASE_URL" };
}

const prepareTimeoutMs = 5_000;

const ModelList = z.object({ data: z.array(z.object({ id: z.string() })) });

/** The problem with the key, the address or the model's name, or null. */
export async function askNote(server: Server): Promise<string | null> {
  const { baseUrl, headers, model, keyVariable = "key_env", addressSetting } = server;
  const { host } = new URL(baseUrl);
  const hasKey = "authorization" in headers();
  try {
    const signal = AbortSignal.timeout(prepareTimeoutMs);
    const response = await fetch(endpoint(baseUrl, "models"), { headers: headers(), signal });
    const body = await response.text();
    if (response.status === 401 || response.status === 403) {
      return !hasKey ? `${host} requires a key; set ${keyVariable}` : `${host} rejected ${keyVariable}; check the key`;
    }
    if (response.status === 404) return `${host} returned 404; is /v1 missing in ${addressSetting}?`;
    const list = ModelList.safeParse(JSON.parse(body));
    const ids = list.success ? list.data.data.map((model) => model.id) : [];
    // Ollama accepts a model without its tag, too.
    if (ids.length === 0 || ids.includes(model) || ids.includes(`${model}:latest`)) return null;
    const some = ids.slice(0, 5).join(", ");
    return `${host} does not list ${model}; it lists ${some}${ids.length > 5 ? ", …" : ""}`;
  } catch (error) {
    // The server responds but does not list models: the first call will show whether it works.
    if (error instanceof SyntaxError) return null;
    return `${host} does not respond; is the server running?`;
  }
}

/**
 * `base` resolves paths below the server's base address, `root` at its root, where some servers have their own
 * endpoints.
 */
export function askJson(server: Server, signal: AbortSignal): { base: Probe; root: Probe } {
  const ask = async (url: URL, body: unknown): Promise<unknown> => {
    const posted = { method: "POST", body: JSON.stringify(body) };
    const headers = { ...server.headers(), "content-type": "application/json" };
    const response = await fetch(url, { headers, signal, ...(body === undefined ? {} : posted) });
    const text = await response.text();
    return response.ok ? parseJson(text) : undefined;
  };
  const root = new URL(server.baseUrl);
  root.pathname = root.pathname.replace(/\/v1\/*$/, "");
  return {
    base: (path, body) => ask(endpoint(server.baseUrl, path), body),
    root: (path, body) => ask(endpoint(root.href, path), body),
  };
}

export function endpoint(baseUrl: string, path: string): URL {
  const url = new URL(baseUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/${path}`;
  return url;
}

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
