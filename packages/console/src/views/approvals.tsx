// What waits for a person in all sessions: tool calls that need consent and questions of the agent; and the decisions of the past.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, request, type Result } from "../api/http.ts";
import { countApprovals } from "../app/approval-count.ts";
import { href } from "../app/router.ts";
import { ApprovalCard } from "../chat/approval-card.tsx";
import { visible } from "../chat/markdown.ts";
import { clock } from "../parts/format.ts";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction } from "../parts/toast.tsx";

const everyMs = 4_000;

type Approval = Result<"approvalsList">["approvals"][number];
type Question = Result<"questionsList">["questions"][number];

export function Approvals(): JSX.Element {
  const state = useSignal<"pending" | "all">("pending");
  const load = async () => {
    const [{ approvals }, { questions }] = await Promise.all([
      call<"approvalsList">("GET", "/api/approvals", { query: { state: state.value, limit: 100 } }),
      call<"questionsList">("GET", "/api/questions", { query: { limit: 100 } }),
    ]);
    return { approvals, questions };
  };
  const loaded = useLoad(load, [state.value], everyMs);
  const changed = () => void loaded.reload();
  return (
    <div class="page">
      <header class="page-head">
        <h1>Approvals and questions</h1>
        <select
          aria-label="Which approvals"
          value={state.value}
          onChange={(event) => (state.value = event.currentTarget.value === "all" ? "all" : "pending")}
        >
          <option value="pending">Waiting</option>
          <option value="all">All</option>
        </select>
      </header>
      <WhenLoaded state={loaded}>
        {({ approvals, questions }) =>
          approvals.length + questions.length === 0 ? (
            <EmptyState icon="approvals" title="Nothing waits for you">
              <p>
                Questions of the agent and calls that need your consent appear here and in their chat. Which calls do is
                decided by <code>[permissions]</code> in the settings and by <code>/mode</code> in a session.
              </p>
            </EmptyState>
          ) : (
            <ul class="cards">
              {questions.map((each) => (
                <QuestionRow key={`${each.turnId} ${each.callId}`} question={each} changed={changed} />
              ))}
              {approvals.map((each) => (
                <ApprovalRow key={each.id} approval={each} changed={changed} />
              ))}
            </ul>
          )
        }
      </WhenLoaded>
    </div>
  );
}

interface HeadProps {
  name: string;
  state: { text: string; isGood: boolean };
  of: Pick<Approval, "sessionId" | "sessionTitle" | "turnId">;
  at: string;
}

function Head({ name, state, of: { sessionId, sessionTitle, turnId }, at }: HeadProps): JSX.Element {
  return (
    <p class="row">
      <strong>{visible(name)}</strong>
      <span class={state.isGood ? "tag good" : "tag"}>{state.text}</span>
      <a class="grow" href={href("chat", sessionId)}>
        <bdi>{visible(sessionTitle ?? "Untitled session")}</bdi>
      </a>
      <a href={href("turn", turnId)}>Turn</a>
      <time class="muted" datetime={at}>
        {clock(at, new Date())}
      </time>
    </p>
  );
}

function ApprovalRow({ approval, changed }: { approval: Approval; changed: () => void }): JSX.Element {
  const { id, tool, summary, reason, mayAlways = true, state, decidedBy, requestedAt } = approval;
  const decision = state === "pending" ? null : { allowed: state === "allowed", by: decidedBy ?? "nobody: it expired" };
  return (
    <li class="card" data-row tabIndex={-1}>
      <Head name={tool} state={{ text: state, isGood: state === "allowed" }} of={approval} at={requestedAt} />
      <ApprovalCard approval={{ approvalId: id, tool, summary, reason, mayAlways, decision }} decided={changed} />
    </li>
  );
}

function QuestionRow({ question, changed }: { question: Question; changed: () => void }): JSX.Element {
  const text = useSignal("");
  const busy = useSignal(false);
  const answer = async (chosen: string) => {
    busy.value = true;
    const body = { session: question.sessionId, text: chosen };
    await runAction(() => request("POST", "/api/messages", { body, key: crypto.randomUUID() }), "Answered");
    busy.value = false;
    void countApprovals();
    changed();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.value.trim() !== "") void answer(text.value.trim());
  };
  return (
    <li class="card" data-row tabIndex={-1}>
      <Head name="Question" state={{ text: "open", isGood: false }} of={question} at={question.askedAt} />
      <section class="ask" aria-label="Question">
        <p>{visible(question.question)}</p>
        {question.ownerAnswers ? (
          <form class="row" onSubmit={submit}>
            {question.options.map((option) => (
              <button key={option} type="button" class="button" disabled={busy} onClick={() => void answer(option)}>
                {visible(option)}
              </button>
            ))}
            <input
              type="text"
              class="grow"
              aria-label="Answer"
              placeholder={question.options.length > 0 ? "or another answer" : "Answer"}
              onInput={(event) => (text.value = event.currentTarget.value)}
            />
            <button type="submit" class="button primary" disabled={busy}>
              Answer
            </button>
          </form>
        ) : (
          <p class="muted">It is answered by the person it was sent to, in their conversation.</p>
        )}
      </section>
    </li>
  );
}
