// A tool call: what it does, its progress and result, and the question whether it may run.
import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { DiffView } from "../parts/diff-view.tsx";
import { duration } from "../parts/format.ts";
import { Icon } from "../parts/icons.tsx";
import { ApprovalCard } from "./approval-card.tsx";
import { Files } from "./files.tsx";
import { visible } from "./markdown.ts";
import type { OpenSession } from "./session.ts";
import type { ToolView } from "./state.ts";
import { SubagentList } from "./subagents.tsx";
import { describeCall, exitCodeOf, readableInput } from "./tool-summary.ts";

/** Of what a running command prints. */
const liveLines = 12;
/** Longer results are folded. */
const shownCharacters = 1_200;

export function ToolCard({ session, callId }: { session: OpenSession; callId: string }): JSX.Element | null {
  const tool = useComputed(() => session.chat.value.tools.get(callId));
  const approval = useComputed(() => session.chat.value.approvals.get(callId));
  const question = useComputed(() => session.chat.value.questions.get(callId));
  const started = useComputed(() => {
    const { sessions, tasks = [] } = session.children.value;
    const ids = new Set(tasks.filter((each) => each.callId === callId).map(({ sessionId }) => sessionId));
    const last = session.chat.value.tools.get(callId)?.subagent ?? "";
    return sessions.filter(({ sessionId }) => ids.has(sessionId) || sessionId === last);
  }).value;
  const view = tool.value;
  if (view === undefined) return null;
  return (
    <>
      <Call view={view} />
      {started.length > 0 && <SubagentList sessions={started} />}
      {view.progress !== null && <Progress progress={view.progress} />}
      {approval.value !== undefined && view.output === null && <ApprovalCard approval={approval.value} />}
      {question.value !== undefined && (
        <section class="ask" aria-label="Question">
          <p>{visible(question.value.question)}</p>
          <div class="row">
            {question.value.options.map((option) => (
              <button key={option} type="button" class="button" onClick={() => void session.send(option, [])}>
                {visible(option)}
              </button>
            ))}
          </div>
          <p class="muted">
            {question.value.options.length > 0
              ? "Choose one, or write another answer below."
              : "Write the answer below."}
          </p>
        </section>
      )}
    </>
  );
}

function Call({ view }: { view: ToolView }): JSX.Element {
  const { title, details, change } = useMemo(() => describeCall(view.input), [view.input]);
  const exitCode = view.output === null ? null : exitCodeOf(view.output);
  const state = exitCode !== null && exitCode !== 0 && view.state === "done" ? "failed" : view.state;
  return (
    <details class={`tool tool-${state}`} open={change !== null && view.state !== "denied"}>
      <summary>
        <StateMark state={state} />
        <span class="tool-name">{view.tool}</span>
        <span class="tool-title">{title}</span>
        <span class="tool-facts">
          {exitCode !== null && exitCode !== 0 && <span class="bad">exit {exitCode}</span>}
          {view.isolation !== null && <span title="Isolation of the command">{view.isolation}</span>}
          {view.state === "running" && view.startedAtMs !== null && <Elapsed sinceMs={view.startedAtMs} />}
          {view.durationMs !== null && <span>{duration(view.durationMs)}</span>}
        </span>
      </summary>
      <div class="tool-body">
        {details !== null && <Output label="Arguments" text={details} />}
        {change !== null && <DiffView before={change.before} after={change.after} />}
        {view.output !== null && view.output !== "" && <Output label="Result" text={visible(view.output)} />}
        {view.output === "" && <p class="muted">No output.</p>}
        <Files files={view.files} />
      </div>
    </details>
  );
}

/** A call whose arguments are being written. */
export function PendingCall({ tool, input }: { tool: string; input: string }): JSX.Element {
  return (
    <section class="tool tool-requested" aria-label={`${tool}, being written`}>
      <p class="tool-line">
        <StateMark state="requested" />
        <span class="tool-name">{tool}</span>
        <span class="tool-title">is being written</span>
      </p>
      <pre class="output pending-input">{visible(readableInput(input))}</pre>
    </section>
  );
}

const marks = { done: "check", failed: "cross", denied: "cross" } as const;
const names = { requested: "waiting", running: "running", done: "done", failed: "failed", denied: "denied" } as const;

function StateMark({ state }: { state: ToolView["state"] }): JSX.Element {
  const icon = state === "requested" || state === "running" ? null : marks[state];
  return (
    <span class={`mark mark-${state}`} role="img" aria-label={names[state]}>
      {icon === null ? <span class="spinner" /> : <Icon name={icon} />}
    </span>
  );
}

function Progress({ progress }: { progress: NonNullable<ToolView["progress"]> }): JSX.Element {
  const { done, total, message, output } = progress;
  if (output !== undefined) {
    return (
      <pre class="output live-output" role="status" aria-label="Output so far" aria-live="off">
        {visible(output.trimEnd().split("\n").slice(-liveLines).join("\n"))}
      </pre>
    );
  }
  return (
    <div class="progress-line" role="status">
      {total !== null && total > 0 && <progress value={done} max={total} aria-label="Progress" />}
      <span>{visible(message)}</span>
    </div>
  );
}

function Output({ label, text }: { label: string; text: string }): JSX.Element {
  const whole = useSignal(false);
  const isLong = text.length > shownCharacters;
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard */}
      <pre class="output" tabIndex={0} aria-label={label}>
        {isLong && !whole.value ? `${text.slice(0, shownCharacters)}…` : text}
      </pre>
      {isLong && (
        <button type="button" class="link-button" onClick={() => (whole.value = !whole.value)}>
          {whole.value ? "Show less" : `Show all ${text.length.toLocaleString()} characters`}
        </button>
      )}
    </>
  );
}

export function Elapsed({ sinceMs }: { sinceMs: number }): JSX.Element {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => (now.value = Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return <span class="elapsed">{duration(Math.max(0, Math.floor((now.value - sinceMs) / 1_000) * 1_000))}</span>;
}
