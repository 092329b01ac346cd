// Named model servers, `[llm.<name>]`, in addition to the two that environment variables configure. A model on one is `<name>:<model>`.
import { z } from "zod";

/** Providers without an entry: `anthropic` and `openai` are configured by environment variables. */
export const builtInProviders = ["anthropic", "openai", "rehearsal"] as const;

const LlmSettings = z.strictObject({
  /**
   * The API's format: OpenAI's chat completions (also Ollama, vLLM, LM Studio, llama.cpp, OpenRouter), OpenAI's Responses, in which the
   * model keeps its reasoning between tool calls, or Anthropic's messages.
   */
  api: z.enum(["openai", "openai_responses", "anthropic"]).default("openai"),
  /** The base URL; for OpenAI's formats with `/v1`. */
  base_url: z
    .url({ protocol: /^https?$/, error: "must be an address such as http://127.0.0.1:11434/v1" })
    .refine((url) => (URL.parse(url)?.username ?? "") === "", "must not contain a user name or password; use key_env"),
  /** Name of the environment variable with the key; omitted: no key is sent. */
  key_env: z
    .string()
    .regex(
      /^(?:PARLEY_AGENT_[A-Z0-9_]+|OPENAI_API_KEY|ANTHROPIC_API_KEY)$/,
      "must be the NAME of an environment variable: one that begins with PARLEY_AGENT_, OPENAI_API_KEY or ANTHROPIC_API_KEY",
    )
    .optional(),
  /** The model that the name alone selects. */
  model: z.string().min(1).optional(),
});

export const LlmsSettings = z
  .record(z.string(), LlmSettings)
  .superRefine((servers, context) => {
    for (const name of Object.keys(servers)) {
      const isBuiltIn = builtInProviders.some((each) => each === name);
      const problem = isBuiltIn ? "is the name of a built-in provider; choose another name" : nameProblem(name);
      if (problem !== null) context.addIssue({ code: "custom", path: [name], message: problem });
    }
  })
  .default({});
export type LlmsSettings = z.infer<typeof LlmsSettings>;

function nameProblem(name: string): string | null {
  return /^[a-z][a-z0-9_-]{0,31}$/.test(name) ? null : "must be a name of lower-case letters, digits, _ or -";
}
