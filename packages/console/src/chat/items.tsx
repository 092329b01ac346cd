// The rows of a conversation.
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { href } from "../app/router.ts";
import { clock, compact, money } from "../parts/format.ts";
import { Files } from "./files.tsx";
import { visible } from "./markdown.ts";
import type { OpenSession } from "./session.ts";
import type { Block, Item } from "./state.ts";
import { Markdown } from "./text.tsx";
import { PendingCall, ToolCard } from "./tool-card.tsx";

export function Row({ session, item }: { session: OpenSession; item: Item }): JSX.Element | null {
  switch (item.kind) {
    case "user":
      return <UserRow item={item} />;
    case "assistant":
      return (
        <article class="message assistant" aria-label="Agent">
          {item.blocks.map((block, index) => (
            <BlockView key={index} session={session} block={block} />
          ))}
        </article>
      );
    case "end":
      return <EndRow item={item} />;
    case "compacted":
      return (
        <p class="divider">
          Compacted: {compact(item.tokensBefore)} → {compact(item.tokensAfter)} tokens
        </p>
      );
  }
}

function BlockView({ session, block }: { session: OpenSession; block: Block }): JSX.Element | null {
  switch (block.type) {
    case "text":
      return <Markdown text={block.text} />;
    case "reasoning":
      return <Thinking text={block.text} />;
    case "tool":
      return <ToolCard session={session} callId={block.callId} />;
  }
}

function Thinking({ text, isLive = false }: { text: string; isLive?: boolean }): JSX.Element {
  return (
    <details class="thinking">
      <summary>{isLive ? "Thinking…" : "Thinking"}</summary>
      <div class="thinking-text" dir="auto">
        {visible(text)}
      </div>
    </details>
  );
}

const originNames: Readonly<Record<string, string>> = {
  process: "Background command",
  cron: "Scheduled job",
  heartbeat: "Heartbeat",
  webhook: "Webhook",
  subagent: "Sub-agent",
};

function UserRow({ item }: { item: Extract<Item, { kind: "user" }> }): JSX.Element {
  const { from } = item;
  const origin = from === undefined ? "System" : originNames[from.origin];
  if (origin !== undefined) {
    return (
      <details class="event-row">
        <summary>
          {origin} <time datetime={item.at}>{clock(item.at, new Date())}</time>
        </summary>
        <div class="plain" dir="auto">
          {visible(item.text)}
        </div>
      </details>
    );
  }
  const who = from === undefined || from.channel === "http" ? "You" : (from.contact.name ?? from.contact.id);
  return (
    <article class="message user" aria-label={who}>
      {(who !== "You" || item.tainted) && (
        <p class="sender">
          <bdi>{visible(who)}</bdi> {from !== undefined && from.channel !== "http" && <span>via {from.channel}</span>}
          {item.tainted && <span class="tag">untrusted</span>}
        </p>
      )}
      {item.text !== "" && (
        <div class="bubble plain" dir="auto">
          {visible(item.text)}
        </div>
      )}
      <Files files={item.files} />
      <time datetime={item.at}>{clock(item.at, new Date())}</time>
    </article>
  );
}

const reasons: Readonly<Record<string, string>> = {
  interrupted: "Stopped",
  aborted: "Stopped",
  max_turns: "A limit of the turn was reached",
  max_budget: "The budget was reached",
  max_tokens: "The answer was cut at the token limit",
  refusal: "The model refused",
  error: "The turn failed",
};

function EndRow({ item }: { item: Extract<Item, { kind: "end" }> }): JSX.Element {
  const { exitReason, usage, cost, turnId } = item;
  const reason = reasons[exitReason];
  const text = item.text === `${reason}.` ? "" : item.text;
  const tokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
  return (
    <footer class={exitReason === "error" ? "turn-end failed" : "turn-end"}>
      {text !== "" && <Markdown text={text} />}
      <p>
        {reason !== undefined && <strong>{reason}. </strong>}
        <a href={href("turn", turnId)}>Turn</a>
        {tokens > 0 && (
          <>
            {" · "}
            {compact(tokens)} tokens · {money(cost)}
          </>
        )}
      </p>
    </footer>
  );
}

/** What is streaming now. */
export function LiveRow({ session }: { session: OpenSession }): JSX.Element | null {
  const step = useComputed(() => session.chat.value.live).value;
  if (step === null || (step.text === "" && step.reasoning === "" && step.calls.length === 0)) return null;
  return (
    <article class="message assistant live" aria-label="Agent, writing" aria-busy="true">
      {step.reasoning !== "" && <Thinking text={step.reasoning} isLive />}
      {step.text !== "" && <Markdown text={step.text} isLive />}
      {step.calls.map(({ callId, tool, input }) => (
        <PendingCall key={callId} tool={tool} input={input} />
      ))}
      {step.hasGap && <p class="muted">… the rest appears when this step is complete.</p>}
    </article>
  );
}
