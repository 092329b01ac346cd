// Who can be asked, by the keys and addresses that are there; pure.
import { parseModelName, type ModelName } from "./model-name.ts";

export interface ModelAccess {
  anthropic: { apiKey: string; baseUrl: string | undefined } | null;
  /** Without a key where the server is one's own. */
  openai: { apiKey: string | undefined; baseUrl: string } | null;
}

/** The model of a name, or why it cannot be asked: what is missing, in words for whoever runs Parley. */
export function findAccess(name: string, access: ModelAccess): { model: ModelName } | { problem: string } {
  const model = parseModelName(name);
  if (model === undefined) {
    return { problem: `"${name}" names no model; write anthropic:<model>, openai:<model> or rehearsal` };
  }
  if (model.provider === "anthropic" && access.anthropic === null) {
    return { problem: `${name} is asked for, but ANTHROPIC_API_KEY is not set` };
  }
  if (model.provider === "openai" && access.openai === null) {
    return {
      problem:
        `${name} is asked for, but neither OPENAI_API_KEY nor OPENAI_BASE_URL is set. Set OPENAI_API_KEY for OpenAI, or ` +
        `OPENAI_BASE_URL for a server of your own (Ollama: http://127.0.0.1:11434/v1)`,
    };
  }
  return { model };
}

/** What must never stand in a log. */
export function secretsIn({ anthropic, openai }: ModelAccess): string[] {
  return [anthropic?.apiKey, openai?.apiKey].filter((key) => key !== undefined);
}
