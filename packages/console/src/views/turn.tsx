// One turn: what happened when, from the recorded steps, with tokens and cost.
import type { JSX } from "preact";
import { call } from "../api/http.ts";
import { href, route } from "../app/router.ts";
import { visible } from "../chat/markdown.ts";
import { Markdown } from "../chat/text.tsx";
import { cacheShare, clock, compact, duration, money } from "../parts/format.ts";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { Fact } from "./cluster.tsx";
import { ModelCalls } from "./model-calls.tsx";
import { waterfall, type Bar } from "./waterfall.ts";

const everyMs = 3_000;
/** Readable names of the usual ends of a turn; others are shown as they are. */
const ends: Readonly<Record<string, string>> = { end_turn: "answered", interrupted: "stopped", aborted: "stopped" };

export function Turn(): JSX.Element {
  const { id } = route.value;
  if (id === null) {
    return (
      <EmptyState icon="clock" title="Which turn?">
        <p>Open one with the link below an answer in the chat.</p>
      </EmptyState>
    );
  }
  return <TurnOf key={id} id={id} />;
}

function TurnOf({ id }: { id: string }): JSX.Element {
  const load = async () => {
    const [{ turn }, trace] = await Promise.all([
      call<"turnsGet">("GET", `/api/turns/${id}`),
      call<"turnsTrace">("GET", `/api/turns/${id}/trace`),
    ]);
    return { turn, trace };
  };
  const loaded = useLoad(load, [id], everyMs);
  return (
    <div class="page">
      <WhenLoaded state={loaded}>
        {({ turn, trace }) => {
          const cached = cacheShare(turn.usage);
          const { bars, totalMs } = waterfall(trace, Date.now());
          return (
            <>
              <header class="page-head">
                <h1>Turn</h1>
                <a class="button" href={href("chat", turn.sessionId)}>
                  Open the session
                </a>
              </header>
              <dl class="facts">
                <Fact name="State" value={ends[turn.exitReason ?? ""] ?? turn.exitReason ?? turn.state} />
                <Fact name="Started" value={clock(turn.startedAt, new Date())} />
                <Fact name="Duration" value={duration(totalMs)} />
                <Fact name="Model calls" value={String(turn.modelSteps)} />
                <Fact name="Cost" value={money(turn.cost)} />
                <Fact name="Tokens out" value={compact(turn.usage.outputTokens)} />
                <Fact
                  name="From the provider's cache"
                  value={cached === null ? "–" : `${Math.round(cached * 100)} %`}
                />
                <Fact name="Attempts" value={String(turn.attempts)} />
              </dl>
              <section>
                <h2>What happened when</h2>
                <p class="muted">
                  A line at the end of a bar is a commit: the message was claimed, or the result of the model call
                  stored.
                </p>
                <ol class="waterfall">
                  {bars.map((bar, index) => (
                    <Line key={index} bar={bar} totalMs={totalMs} />
                  ))}
                </ol>
              </section>
              <ModelCalls turnId={id} spans={trace.spans} />
              {turn.text !== null && turn.text !== "" && (
                <section>
                  <h2>Answer</h2>
                  <Markdown text={turn.text} />
                </section>
              )}
            </>
          );
        }}
      </WhenLoaded>
    </div>
  );
}

function Line({ bar, totalMs }: { bar: Bar; totalMs: number }): JSX.Element {
  const left = totalMs === 0 ? 0 : (bar.fromMs / totalMs) * 100;
  const width = totalMs === 0 ? 100 : Math.max(0.5, ((bar.toMs - bar.fromMs) / totalMs) * 100);
  return (
    <li>
      <span class="bar-label">
        {visible(bar.label)} <span class="muted">{visible(bar.detail)}</span>
      </span>
      <span class="bar-track">
        <span class={`bar bar-${bar.kind}`} style={{ left: `${left}%`, width: `${Math.min(width, 100 - left)}%` }} />
        {bar.mark !== null && (
          <span class="bar-mark" title={bar.mark} style={{ left: `${Math.min(100, left + width)}%` }} />
        )}
      </span>
      <span class="bar-time">{duration(bar.toMs - bar.fromMs)}</span>
    </li>
  );
}
