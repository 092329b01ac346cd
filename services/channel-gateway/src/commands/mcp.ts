// MCP servers as people use them: how they are, which prompts they have, and saying one of these to the agent.
import { mcpPrompt, mcpPrompts, WireError, type McpPrompt, type McpServerStatus } from "@parley/contracts";
import { Refusal, UsageError, type Command, type Invocation } from "./command.ts";

/** A tool-runner waits so long for servers to list their prompts, or for one to fill one in, and a little more. */
const listMs = 12_000;
const promptMs = 25_000;
const promptPattern = /^\/mcp__(.+?)__(.+)$/;

export const mcpCommands: readonly Command[] = [
  {
    name: "/mcp",
    usage: "/mcp [prompts [server]]",
    summary: "the MCP servers, and the prompts they have for you",
    who: "owner",
    async run({ deps, words }) {
      const [what, server] = words;
      if (what !== undefined && what !== "prompts") throw new UsageError(`/mcp knows no "${what}".`);
      const input = server === undefined ? {} : { server };
      const { prompts, servers } = await orRefuse(
        deps.bus.request(mcpPrompts, input, { timeoutMs: listMs, attemptMs: listMs }),
      );
      return mcpAnswer(what, prompts, servers);
    },
  },
];

/** What `/mcp` (`what` undefined) and `/mcp prompts` say; where there is nothing, why, or what to do next. */
export function mcpAnswer(
  what: string | undefined,
  prompts: readonly McpPrompt[],
  servers: readonly McpServerStatus[],
): string {
  if (servers.length === 0)
    return "There are no MCP servers. Add one to parley.toml ([mcp.servers.<name>], see docs/mcp.md) and start Parley again.";
  if (what === undefined) return [...servers.map(serverLine), "/mcp prompts lists their prompts."].join("\n");
  if (prompts.length > 0) return prompts.map(promptLine).join("\n");
  const away = servers.filter(({ state }) => state !== "ready").map(serverLine);
  return ["There are no prompts.", ...away].join("\n");
}

/** The command that `/mcp__<server>__<prompt>` is; undefined for other names. */
export function promptCommand(name: string): Command | undefined {
  const [, server, prompt] = promptPattern.exec(name) ?? [];
  if (server === undefined || prompt === undefined) return undefined;
  return {
    name,
    usage: `${name} [value … | name=value …]`,
    summary: `the prompt ${prompt} of ${server}`,
    who: "owner",
    run: (invocation) => say(invocation, server, prompt),
  };
}

/** What the server makes of the prompt is said to the agent as the person's own message; its answer comes where theirs do. */
async function say({ deps, speaker, rest }: Invocation, server: string, prompt: string): Promise<string> {
  const input = { server, prompt, words: wordsOf(rest) };
  const answer = await orRefuse(deps.bus.request(mcpPrompt, input, { timeoutMs: promptMs, attemptMs: promptMs }));
  if (answer.outcome === "failed") throw new Refusal(`${answer.message} /mcp prompts lists what there is.`);
  const { route, channel, account, conversation, contact, role, direct, replyTo, ref } = speaker;
  const { id, name } = contact;
  await deps.say(
    {
      channel,
      account,
      externalId: `prompt:${ref}`.slice(0, 512),
      conversation,
      contact: { id, ...(name === undefined ? {} : { name }) },
      role,
      origin: "user",
      direct,
      parts: answer.parts,
      replyTo,
    },
    route,
  );
  return `The prompt ${prompt} of ${server} goes to the agent.`;
}

async function orRefuse<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
    throw new Refusal("No tool-runner answers at the moment; try again in a while.");
  }
}

/** Words, with quotes around those that hold spaces. */
export function wordsOf(text: string): string[] {
  const words = text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""),
  );
}

function serverLine({ server, state, tools, problem }: McpServerStatus): string {
  return `${server}: ${state}, ${tools} tools${problem === null ? "" : ` (${problem})`}`;
}

function promptLine({ server, prompt, about, arguments: wanted }: McpPrompt): string {
  const names = wanted.map(({ name, required }) => (required ? ` <${name}>` : ` [${name}]`)).join("");
  const typed = `/mcp__${server}__${prompt}`.toLowerCase().replaceAll(/[^a-z0-9_/-]/g, "_");
  return `${typed}${names}${about === "" ? "" : `: ${about}`}`;
}
