// /mcp shows and switches MCP servers, their tools and prompts; /mcp__<server>__<prompt> sends a prompt to the agent.
import { mcpPrompt, mcpPrompts, WireError } from "@parley/contracts";
import { nameUuid } from "@parley/kit";
import { getServer, listServers, switchServer } from "./mcp-service.ts";
import { CommandError, type Command, type Invocation } from "./hand-written.ts";
import { nameOf, UsageError, type OperationDeps } from "./operation.ts";
import { promptsText, serversText, switchedText, toolsText } from "./mcp-text.ts";

/** Slightly longer than a tool-runner waits for servers to list their prompts, or for one server to render a prompt. */
const listMs = 12_000;
const promptMs = 25_000;
const promptPattern = /^\/mcp__(.+?)__(.+)$/;

export const mcpCommands: readonly Command[] = [
  {
    name: "/mcp",
    usage: "/mcp [tools <server> | prompts [server] | on|off <server> [tool] | restart <server>]",
    summary: "show MCP servers, their tools and prompts; switch a server, or hide one of its tools",
    async run({ deps, speaker, argumentText }) {
      const [what, server, tool, ...more] = wordsOf(argumentText);
      const to = what?.toLowerCase();
      if (more.length > 0) throw new UsageError(`Unexpected argument: "${more.join(" ")}".`);
      switch (to) {
        case undefined:
          return serversText(await listServers(deps));
        case "prompts":
          return prompts(deps, server);
        case "tools": {
          if (server === undefined) throw new UsageError("A server is required.");
          const found = await getServer(deps, server);
          return toolsText(found.server, found.tools);
        }
        case "on":
        case "off":
        case "restart": {
          if (server === undefined) throw new UsageError("A server is required.");
          const who = { by: nameOf(speaker), opId: nameUuid(`mcp:${speaker.ref}`) };
          return switchedText(to, await switchServer(deps, { to, server, tool }, who));
        }
        default:
          throw new UsageError(`Unknown subcommand: /mcp ${what ?? ""}.`);
      }
    },
  },
];

async function prompts({ bus }: OperationDeps, server: string | undefined): Promise<string> {
  const input = server === undefined ? {} : { server };
  const found = await orRefuse(bus.request(mcpPrompts, input, { timeoutMs: listMs, attemptMs: listMs }));
  return promptsText(found.prompts, found.servers);
}

/** Returns the command for a name `/mcp__<server>__<prompt>`; undefined for other names. */
export function promptCommand(name: string): Command | undefined {
  const [, server, prompt] = promptPattern.exec(name) ?? [];
  if (server === undefined || prompt === undefined) return undefined;
  return {
    name,
    usage: `${name} [value … | name=value …]`,
    summary: `send the prompt ${prompt} of ${server} to the agent`,
    run: (invocation) => say(invocation, server, prompt),
  };
}

/** Sends the rendered prompt to the agent as the sender's own message; the answer goes to the sender's reply address. */
async function say({ deps, speaker, argumentText }: Invocation, server: string, prompt: string): Promise<string> {
  const input = { server, prompt, words: wordsOf(argumentText) };
  const answer = await orRefuse(deps.bus.request(mcpPrompt, input, { timeoutMs: promptMs, attemptMs: promptMs }));
  if (answer.outcome === "failed")
    throw new CommandError(`${answer.message} /mcp prompts lists the available prompts.`);
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
  return `The prompt ${prompt} of ${server} was sent to the agent.`;
}

async function orRefuse<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
    throw new CommandError("No tool-runner is responding; try again in a minute.");
  }
}

/** Splits arguments at white space; quotes enclose an argument that contains spaces. */
export function wordsOf(text: string): string[] {
  const words = text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""),
  );
}
