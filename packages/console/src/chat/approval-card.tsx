// The question whether a tool call may run: approve, always, deny with a reason.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../api/http.ts";
import { countApprovals } from "../app/approval-count.ts";
import { runAction } from "../parts/toast.tsx";
import { visible } from "./markdown.ts";

interface Approvable {
  approvalId: string;
  tool: string;
  summary: string;
  reason: string;
  /** False: an approval covers this call only. */
  mayAlways: boolean;
  decision: { allowed: boolean; by: string } | null;
}

interface Props {
  approval: Approvable;
  /** Called after a decision. */
  decided?: () => void;
}

export function ApprovalCard({ approval, decided }: Props): JSX.Element {
  const { approvalId, summary, reason, mayAlways, decision } = approval;
  const denying = useSignal(false);
  const why = useSignal("");
  const busy = useSignal(false);
  const decide = async (body: object) => {
    busy.value = true;
    await runAction(() => call<"approvalsDecide">("POST", `/api/approvals/${approvalId}`, { body }));
    busy.value = false;
    void countApprovals();
    decided?.();
  };
  if (decision !== null) {
    return (
      <p class="muted decision">
        {decision.allowed ? "Approved" : "Denied"} by {visible(decision.by)}
      </p>
    );
  }
  const deny = (event: Event) => {
    event.preventDefault();
    const message = why.value.trim();
    void decide({ decision: "deny", ...(message === "" ? {} : { message }) });
  };
  return (
    <section class="approval" aria-label={`Approval ${approvalId}`}>
      <p class="approval-title">
        Allow this call? <span class="muted">{visible(reason)}</span>
      </p>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard */}
      <pre class="output" tabIndex={0} aria-label="The call">
        {visible(summary)}
      </pre>
      {denying.value ? (
        <form class="row" onSubmit={deny}>
          <input
            type="text"
            aria-label="Reason for the agent"
            placeholder="Reason, which the agent reads (optional)"
            maxLength={4_000}
            onInput={(event) => (why.value = event.currentTarget.value)}
          />
          <button type="submit" class="button danger" disabled={busy}>
            Deny
          </button>
          <button type="button" class="button" onClick={() => (denying.value = false)}>
            Back
          </button>
        </form>
      ) : (
        <div class="row">
          <button
            type="button"
            class="button primary"
            disabled={busy}
            onClick={() => void decide({ decision: "allow" })}
          >
            Approve
          </button>
          {mayAlways && (
            <button
              type="button"
              class="button"
              disabled={busy}
              title="Also allow similar calls in this session"
              onClick={() => void decide({ decision: "allow", always: true })}
            >
              Always
            </button>
          )}
          <button type="button" class="button danger" disabled={busy} onClick={() => (denying.value = true)}>
            Deny…
          </button>
          <span class="muted" title={`In a chat: /approve ${approvalId}`}>
            code <code>{approvalId}</code>
          </span>
        </div>
      )}
    </section>
  );
}
