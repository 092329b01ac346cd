// Serves `mcp.prompts` and `mcp.prompt`: lists the prompts of MCP servers and renders one as a message.
import type { Client, GetPromptResult, Prompt } from "@modelcontextprotocol/client";
import type { Bus } from "@parley/bus";
import { mcpPrompt, mcpPrompts, type InputOf, type McpPrompt, type OutputOf } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import { promptContents, type AttachmentStore } from "../tool/attachments.ts";
import { truncateContent } from "@parley/bus";
import { wrapUntrusted } from "../tool/untrusted-block.ts";
import { blockText, ResultAttachments } from "./result-text.ts";
import type { McpServer } from "./server.ts";
import type { McpServers } from "./servers.ts";

/** Limits for starting servers, and again for listing prompts (`listMs`); for rendering a prompt (`timeoutMs`). */
const listMs = 5_000;
const timeoutMs = 20_000;
/** Maximum number of prompts shown per server. */
const maxShown = 100;
/** Maximum UTF-16 units of a prompt's description. */
const maxLineChars = 150;
/** Maximum size of a prompt's text as JSON; pictures are separate parts. */
const maxTextBytes = 150_000;

export function servePrompts(bus: Bus, servers: McpServers): { close(): void } {
  const contents = promptContents(bus);
  const served = [
    bus.serve(mcpPrompts, async ({ server }) => {
      await servers.settled(listMs);
      return { prompts: await listed(servers, server), servers: servers.statuses };
    }),
    bus.serve(mcpPrompt, (input) => filledIn(servers, input, contents)),
  ];
  return { close: () => served.forEach((each) => each.close()) };
}

/** The prompts of servers that are ready and respond in time; the others are omitted. */
async function listed(servers: McpServers, name: string | undefined): Promise<McpPrompt[]> {
  const known = name === undefined ? undefined : serverOf(servers, name);
  const wanted = name === undefined ? servers.all : known === undefined ? [] : [known];
  const all = await Promise.all(
    wanted
      .filter(({ status }) => status.state === "ready")
      .map(async (server) => {
        const prompts = await use(server, promptsOf, listMs);
        if ("problem" in prompts) return [];
        return prompts.value.slice(0, maxShown).map<McpPrompt>((prompt) => ({
          server: server.plan.name,
          prompt: prompt.name,
          about: oneLine(prompt.description ?? prompt.title ?? "", maxLineChars),
          arguments: (prompt.arguments ?? []).map((each) => ({ name: each.name, required: each.required === true })),
        }));
      }),
  );
  return all.flat().toSorted((a, b) => (`${a.server} ${a.prompt}` < `${b.server} ${b.prompt}` ? -1 : 1));
}

async function filledIn(
  servers: McpServers,
  { server: serverName, prompt: promptName, words }: InputOf<typeof mcpPrompt>,
  contents: Pick<AttachmentStore, "keep">,
): Promise<OutputOf<typeof mcpPrompt>> {
  const server = serverOf(servers, serverName);
  if (server === undefined) return failed(`Unknown MCP server "${serverName}".`);
  const { name } = server.plan;
  const answer = await use(
    server,
    async (client, signal) => {
      const prompts = await promptsOf(client, signal);
      const prompt = findByTypedName(prompts, (each) => each.name, promptName);
      if (prompt === undefined) {
        const names = prompts.map((each) => each.name).join(", ");
        return failed(
          `The MCP server ${name} has no prompt "${promptName}". ${names === "" ? "It has no prompts." : `Its prompts: ${names}.`}`,
        );
      }
      const args = argumentsOf(prompt, words);
      if ("problem" in args) return failed(`Invalid arguments for the prompt ${prompt.name}: ${args.problem}.`);
      const result = await client.getPrompt(
        { name: prompt.name, arguments: args.values },
        { signal, timeout: timeoutMs },
      );
      return { outcome: "done" as const, parts: await partsOf(name, prompt.name, result, contents) };
    },
    timeoutMs,
  );
  return "problem" in answer ? failed(answer.problem) : answer.value;
}

async function partsOf(
  server: string,
  prompt: string,
  { messages }: GetPromptResult,
  contents: Pick<AttachmentStore, "keep">,
) {
  const kept = new ResultAttachments(contents);
  const texts = [`[prompt "${prompt}" of the MCP server ${server}]`];
  for (const { role, content } of messages) {
    const text = await blockText(server, content, kept);
    const own = content.type === "resource" ? wrapUntrusted(`a resource of the MCP server ${server}`, text) : text;
    texts.push(role === "assistant" ? `[example answer from the prompt]\n${own}` : own);
  }
  const text = truncateContent(texts.join("\n\n"), maxTextBytes);
  return [
    { type: "text" as const, text },
    ...kept.attachments.map((attachment) => ({ type: "blob" as const, ...attachment })),
  ];
}

async function promptsOf(client: Client, signal: AbortSignal): Promise<Prompt[]> {
  if (client.getServerCapabilities()?.prompts === undefined) return [];
  return (await client.listPrompts({}, { signal, timeout: timeoutMs })).prompts;
}

/** The result of the server, or a message about the failure. */
async function use<T>(
  server: McpServer,
  work: (client: Client, signal: AbortSignal) => Promise<T>,
  withinMs: number,
): Promise<{ value: T } | { problem: string }> {
  const late = AbortSignal.timeout(withinMs);
  let answer: { value: T } | undefined;
  const { content } = await server.use(async (client) => {
    answer = { value: await work(client, late) };
    return { content: "", isError: false };
  }, late);
  if (answer !== undefined) return answer;
  return { problem: content === "" ? `The MCP server ${server.plan.name} did not respond in time.` : content };
}

function serverOf(servers: McpServers, name: string): McpServer | undefined {
  return findByTypedName(servers.all, ({ plan }) => plan.name, name);
}

function failed(message: string): Extract<OutputOf<typeof mcpPrompt>, { outcome: "failed" }> {
  return { outcome: "failed", message };
}

/** A name in the form used in commands. */
export function typedName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_-]/g, "_");
}

/** The matching item: by its exact name, otherwise by its typed form if that is unique. */
export function findByTypedName<T>(all: readonly T[], nameOf: (each: T) => string, typed: string): T | undefined {
  const exact = all.find((each) => nameOf(each) === typed);
  if (exact !== undefined) return exact;
  const [only, second] = all.filter((each) => typedName(nameOf(each)) === typedName(typed));
  return second === undefined ? only : undefined;
}

/** The arguments by name; or the problem, for the person. */
export function argumentsOf(
  { arguments: wanted = [] }: Pick<Prompt, "arguments">,
  words: readonly string[],
): { values: Record<string, string> } | { problem: string } {
  const named = words.map((word) => {
    const at = word.indexOf("=");
    const name = wanted.find((each) => each.name === word.slice(0, Math.max(0, at)))?.name;
    return name === undefined ? undefined : ([name, word.slice(at + 1)] as const);
  });
  const byName = named.length > 0 && named.every((pair) => pair !== undefined);
  if (!byName && words.length > 0 && wanted.length === 0) return { problem: "it takes no arguments" };
  const values: Record<string, string> = byName ? Object.fromEntries(named) : inOrder(wanted, words);
  const missing = wanted.filter(({ name, required }) => required === true && values[name] === undefined);
  if (missing.length === 0) return { values };
  return { problem: `it requires ${missing.map(({ name }) => name).join(", ")}` };
}

function inOrder(wanted: readonly { name: string }[], words: readonly string[]): Record<string, string> {
  const pairs = wanted.flatMap(({ name }, index) => {
    const rest = index === wanted.length - 1 ? words.slice(index) : words.slice(index, index + 1);
    return rest.length === 0 ? [] : [[name, rest.join(" ")] as const];
  });
  return Object.fromEntries(pairs);
}
