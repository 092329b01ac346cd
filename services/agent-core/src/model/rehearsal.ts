// The rehearsal model: no network, no key, no intelligence. It says plainly what it is, and does what a small script in the
// message tells it, so that a newcomer sees the whole cluster work and tests drive it. One instruction a line:
//
//   tool: <name> <json>     call a tool; neighbouring lines call at the same time, `then` begins the next model call
//   then                    what follows belongs to the next model call
//   say: <text>             answer this text; without it the answer sums up what happened
//   think: <text>           think this before answering
//   wait: <ms>              pause before each word of the answer
import { setTimeout as delay } from "node:timers/promises";
import { textOf, type Part, type ToolResult } from "@parley/contracts";
import type { ModelProvider, ModelReply, ModelRequest, PromptMessage } from "./provider.ts";

const note =
  "the built-in rehearsal model: it follows scripts and understands nothing; set ANTHROPIC_API_KEY for a real one";

interface Round {
  calls: { name: string; input: string }[];
  say: string[];
  think: string | undefined;
  waitMs: number;
}

export function createRehearsal(): ModelProvider {
  return {
    name: "rehearsal",
    model: "rehearsal",
    note: () => note,
    prepare: async () => undefined,
    async stream(request, on, signal) {
      on.alive();
      const reply = rehearse(request);
      for (const part of reply.parts) {
        if (part.type === "reasoning") on.delta({ type: "reasoning", text: part.text });
        if (part.type !== "text") continue;
        for (const word of part.text.match(/\s*\S+\s*$|\s*\S+/g) ?? []) {
          if (reply.waitMs > 0) await delay(reply.waitMs, undefined, { signal });
          signal.throwIfAborted();
          on.alive();
          on.delta({ type: "text", text: word });
        }
      }
      return reply;
    },
  };
}

/** What the rehearsal model answers; pure, so that a repeated call is the same call. */
export function rehearse(request: ModelRequest): ModelReply & { waitMs: number } {
  const { script, done, results } = currentTurn(request.messages);
  const rounds = parseScript(script);
  const round = rounds[done] ?? { calls: [], say: [], think: undefined, waitMs: rounds.at(-1)?.waitMs ?? 0 };
  const thinking: Part[] = round.think === undefined ? [] : [{ type: "reasoning", text: round.think }];
  const said: Part[] = round.say.length === 0 ? [] : [{ type: "text", text: round.say.join("\n") }];
  const calls: Part[] = round.calls.map((call, index) => ({
    type: "tool_call",
    id: `call_${request.messages.length}_${done}_${index}`,
    name: call.name,
    input: call.input,
  }));
  const summary: Part[] = [{ type: "text", text: summarise(script, results) }];
  const parts = [...thinking, ...said, ...calls, ...(calls.length === 0 && said.length === 0 ? summary : [])];
  return {
    parts,
    stopReason: calls.length > 0 ? "tool_use" : "end_turn",
    rawStopReason: calls.length > 0 ? "tool_use" : "end_turn",
    usage: {
      inputTokens: countTokens(request),
      outputTokens: Math.ceil(textOf(parts).length / 4),
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    },
    model: "rehearsal",
    waitMs: round.waitMs,
  };
}

/** The last thing a person said, how many model calls have answered it so far, and what tools brought since. */
function currentTurn(messages: PromptMessage[]): { script: string; done: number; results: ToolResult[] } {
  let start = messages.length - 1;
  while (start > 0 && !hasText(messages[start])) start -= 1;
  const after = messages.slice(start + 1);
  const own = messages[start]?.parts.findLast((part) => part.type === "text");
  return {
    script: own?.type === "text" ? own.text : "",
    done: after.filter((message) => message.role === "assistant").length,
    results: after.flatMap((message) => message.parts.filter((part) => part.type === "tool_result")),
  };
}

function hasText(message: PromptMessage | undefined): boolean {
  return message?.role === "user" && message.parts.some((part) => part.type === "text");
}

export function parseScript(text: string): Round[] {
  const empty = (): Round => ({ calls: [], say: [], think: undefined, waitMs: 0 });
  const rounds = [empty()];
  for (const line of text.split("\n")) {
    const round = rounds.at(-1) ?? empty();
    const call = /^tool:\s*(\S+)\s*(.*)$/.exec(line);
    const other = /^(say|think|wait):\s?(.*)$/.exec(line);
    if (line.trim() === "then") rounds.push(empty());
    else if (call !== null) round.calls.push({ name: call[1] ?? "", input: call[2] === "" ? "{}" : (call[2] ?? "{}") });
    else if (other?.[1] === "say") round.say.push(other[2] ?? "");
    else if (other?.[1] === "think") round.think = other[2];
    else if (other?.[1] === "wait") round.waitMs = Number(other[2]) || 0;
  }
  return rounds;
}

function summarise(script: string, results: ToolResult[]): string {
  if (results.length === 0) return `[rehearsal model] You said: ${script}`;
  const lines = results.map(
    (result) => `- ${result.name}${result.isError ? " (error)" : ""}: ${result.content.slice(0, 500)}`,
  );
  return `[rehearsal model] The tools answered:\n${lines.join("\n")}`;
}

function countTokens(request: ModelRequest): number {
  return Math.ceil(
    request.messages.reduce((sum, message) => sum + textOf(message.parts).length, request.system.length) / 4,
  );
}
