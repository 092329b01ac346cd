// The sub-agents of a session as a tree: state, what each does now, cost, and a link to its session.
import { useSignal } from "@preact/signals";
import type { SessionSummary } from "@parley/contracts";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../api/http.ts";
import { live } from "../api/socket.ts";
import { href } from "../app/router.ts";
import { Fold } from "../parts/fold.tsx";
import { compact, money } from "../parts/format.ts";
import { WhenLoaded, useLoad } from "../parts/load.tsx";
import { visible } from "./markdown.ts";
import { describeCall } from "./tool-summary.ts";

const everyMs = 3_000;

/** Those that `parent` has started; `none`: what to say when there is none. */
export function Subagents({ parent, none }: { parent: string; none: string }): JSX.Element {
  const query = { parent, subagents: true, limit: 100 };
  const loaded = useLoad(() => call<"sessionsList">("GET", "/api/sessions", { query }), [parent], everyMs);
  return (
    <WhenLoaded state={loaded}>
      {({ sessions }) => (sessions.length === 0 ? <p class="muted">{none}</p> : <SubagentList sessions={sessions} />)}
    </WhenLoaded>
  );
}

export function SubagentList({ sessions }: { sessions: readonly SessionSummary[] }): JSX.Element {
  return (
    <ul class="tree">
      {sessions.map((session) => (
        <li key={session.sessionId}>
          <Fold label={<Line session={session} />}>
            {() => <Subagents parent={session.sessionId} none="It has started no further sub-agent." />}
          </Fold>
        </li>
      ))}
    </ul>
  );
}

function Line({ session }: { session: SessionSummary }): JSX.Element {
  const { sessionId, title, key, profile, messageCount, treeCost, runningTurnId, parked } = session;
  const state = runningTurnId === null ? "ended" : parked ? "waiting" : "running";
  return (
    <>
      <span class={`dot ${state}`} role="img" aria-label={state} />{" "}
      <a href={href("chat", sessionId)}>
        <bdi>{visible(title ?? key)}</bdi>
      </a>{" "}
      <span class="muted">
        {profile ?? "default"} · {compact(messageCount)} messages · {money(treeCost)}
        {state === "running" && <Activity key={runningTurnId} session={session} />}
      </span>
    </>
  );
}

/** What a running sub-agent does now. */
function Activity({ session: { sessionId, seq } }: { session: SessionSummary }): JSX.Element | null {
  const text = useSignal("");
  useEffect(
    () =>
      live.follow(sessionId, {
        seq: () => seq,
        resumed: () => undefined,
        event: (event) => {
          if (event.type === "tool.started") text.value = `${event.tool} ${describeCall(event.input).title}`;
          else if (event.type === "text.delta") text.value = "writes";
          else if (event.type === "reasoning.delta") text.value = "thinks";
        },
      }),
    [sessionId],
  );
  return text.value === "" ? null : <> · {visible(text.value)}</>;
}
