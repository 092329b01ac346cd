// Which models are accessible with the configured keys and addresses; pure.
import { parseModelName, type ModelName } from "./model-name.ts";

export interface ModelAccess {
  anthropic: { apiKey: string; baseUrl: string | undefined } | null;
  /** Self-hosted servers may need no key. */
  openai: { apiKey: string | undefined; baseUrl: string } | null;
}

/** The model of a name, or why it is not accessible: the text names the missing setting for the operator. */
export function findAccess(name: string, access: ModelAccess): { model: ModelName } | { problem: string } {
  const model = parseModelName(name);
  if (model === undefined) {
    return { problem: `"${name}" is not a model name; use anthropic:<model>, openai:<model> or rehearsal` };
  }
  if (model.provider === "anthropic" && access.anthropic === null) {
    return { problem: `${name} requires ANTHROPIC_API_KEY, which is not set` };
  }
  if (model.provider === "openai" && access.openai === null) {
    return {
      problem:
        `${name} requires OPENAI_API_KEY or OPENAI_BASE_URL, and neither is set. Set OPENAI_API_KEY for OpenAI, or ` +
        `OPENAI_BASE_URL for a self-hosted server (Ollama: http://127.0.0.1:11434/v1)`,
    };
  }
  return { model };
}

/** Values that must never be logged. */
export function secretsIn({ anthropic, openai }: ModelAccess): string[] {
  return [anthropic?.apiKey, openai?.apiKey].filter((key) => key !== undefined);
}
