// Tool calls of all sessions that wait for a person, and the decisions of the past.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../api/http.ts";
import { href } from "../app/router.ts";
import { ApprovalCard } from "../chat/approval-card.tsx";
import { clock, shortId } from "../parts/format.ts";
import { Empty, Show, useLoad } from "../parts/load.tsx";

const everyMs = 4_000;

export function Approvals(): JSX.Element {
  const state = useSignal<"pending" | "all">("pending");
  const loaded = useLoad(
    () => call<"approvalsList">("GET", "/api/approvals", { query: { state: state.value, limit: 100 } }),
    [state.value],
    everyMs,
  );
  return (
    <div class="page">
      <header class="page-head">
        <h1>Approvals</h1>
        <select
          aria-label="Which approvals"
          value={state.value}
          onChange={(event) => (state.value = event.currentTarget.value === "all" ? "all" : "pending")}
        >
          <option value="pending">Waiting</option>
          <option value="all">All</option>
        </select>
      </header>
      <Show of={loaded}>
        {({ approvals }) =>
          approvals.length === 0 ? (
            <Empty icon="approvals" title="Nothing waits for you">
              <p>
                Calls that need your consent appear here and in their chat. Which ones do is decided by{" "}
                <code>[permissions]</code> in the settings and by <code>/mode</code> in a session.
              </p>
            </Empty>
          ) : (
            <ul class="cards">
              {approvals.map((each) => (
                <li key={each.id} class="card" data-row tabIndex={-1}>
                  <p class="row">
                    <strong>{each.tool}</strong>
                    <span class={each.state === "allowed" ? "tag good" : "tag"}>{each.state}</span>
                    <span class="grow" />
                    <a href={href("chat", each.sessionId)}>Session {shortId(each.sessionId)}</a>
                    <a href={href("turn", each.turnId)}>Turn</a>
                    <time class="muted" datetime={each.requestedAt}>
                      {clock(each.requestedAt, new Date())}
                    </time>
                  </p>
                  <ApprovalCard
                    approval={{
                      approvalId: each.id,
                      tool: each.tool,
                      summary: each.summary,
                      reason: each.reason,
                      decision:
                        each.state === "pending"
                          ? null
                          : { allowed: each.state === "allowed", by: each.decidedBy ?? "nobody: it expired" },
                    }}
                    decided={() => void loaded.reload()}
                  />
                </li>
              ))}
            </ul>
          )
        }
      </Show>
    </div>
  );
}
