// MCP servers as people use them: how they are, switching them, which prompts they have, and saying one of these to the agent.
import { mcpPrompt, mcpPrompts, WireError } from "@parley/contracts";
import { uuidOf } from "../digest.ts";
import { lookAtServer, lookAtServers, switchServer } from "../mcp-acts.ts";
import { nameOf, Refusal, UsageError, type Command, type CommandDeps, type Invocation } from "./command.ts";
import { promptsText, serversText, switchedText, toolsText } from "./mcp-words.ts";

/** A tool-runner waits so long for servers to list their prompts, or for one to fill one in, and a little more. */
const listMs = 12_000;
const promptMs = 25_000;
const promptPattern = /^\/mcp__(.+?)__(.+)$/;

export const mcpCommands: readonly Command[] = [
  {
    name: "/mcp",
    usage: "/mcp [tools <server> | prompts [server] | on|off <server> [tool] | restart <server>]",
    summary: "the MCP servers: how they are, their tools and prompts; switch one, or hide a tool of it",
    async run({ deps, speaker, rest }) {
      const [what, server, tool, ...more] = wordsOf(rest);
      const to = what?.toLowerCase();
      if (more.length > 0) throw new UsageError(`"${more.join(" ")}" means nothing here.`);
      switch (to) {
        case undefined:
          return serversText(await lookAtServers(deps));
        case "prompts":
          return prompts(deps, server);
        case "tools": {
          if (server === undefined) throw new UsageError("Say whose tools.");
          const found = await lookAtServer(deps, server);
          return toolsText(found.server, found.tools);
        }
        case "on":
        case "off":
        case "restart": {
          if (server === undefined) throw new UsageError("Say which server.");
          const who = { by: nameOf(speaker), opId: uuidOf(`mcp:${speaker.ref}`) };
          return switchedText(to, await switchServer(deps, { to, server, tool }, who));
        }
        default:
          throw new UsageError(`/mcp knows no "${what ?? ""}".`);
      }
    },
  },
];

async function prompts({ bus }: CommandDeps, server: string | undefined): Promise<string> {
  const input = server === undefined ? {} : { server };
  const found = await orRefuse(bus.request(mcpPrompts, input, { timeoutMs: listMs, attemptMs: listMs }));
  return promptsText(found.prompts, found.servers);
}

/** The command that `/mcp__<server>__<prompt>` is; undefined for other names. */
export function promptCommand(name: string): Command | undefined {
  const [, server, prompt] = promptPattern.exec(name) ?? [];
  if (server === undefined || prompt === undefined) return undefined;
  return {
    name,
    usage: `${name} [value … | name=value …]`,
    summary: `the prompt ${prompt} of ${server}`,
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
