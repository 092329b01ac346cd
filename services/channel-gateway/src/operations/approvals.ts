// Approvals: decide, show and list tool calls that wait for a person.
import { operations, store, type Approval } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import { implement, OperationError } from "./operation.ts";

/** Characters of a call shown in the list; the line reports how many are hidden. */
const listedCharacters = 120;

/** A summary begins with the tool's name, unless the call used an alias. */
function callText({ tool, summary }: Pick<Approval, "tool" | "summary">, maxCharacters: number): string {
  return oneLine(summary.startsWith(tool) ? summary : `${tool}: ${summary}`, maxCharacters);
}

function line(approval: Approval): string {
  const { id, reason, expiresAt, hiddenCharacters = 0 } = approval;
  const call = callText(approval, Number.POSITIVE_INFINITY);
  const hidden = hiddenCharacters + Math.max(0, call.length - listedCharacters);
  const more = hidden === 0 ? "" : `\n  ${hidden} more characters hidden: /approvals ${id} shows all`;
  return `${id}  ${call.slice(0, listedCharacters).toWellFormed()}${more}\n  ${oneLine(reason, 240)} Denied automatically at ${expiresAt}.`;
}

function notFound(id: string): OperationError {
  return new OperationError("not_found", `there is no approval ${id}`);
}

export const approvalOperations = [
  implement(
    operations.approvalsList,
    async ({ session, state, limit }, call) => {
      const of = session === undefined ? {} : { sessionId: (await call.session(session)).sessionId };
      return call.deps.bus.request(store.approvalList, { ...of, pending: state === "pending", limit });
    },
    ({ approvals }) =>
      approvals.length === 0
        ? "No tool call waits for approval."
        : `${approvals.map(line).join("\n")}\nAnswer with /approve <id> or /deny <id>.`,
  ),

  implement(
    operations.approvalsGet,
    async ({ id }, { deps }) => {
      const { approval, input } = await deps.bus.request(store.approvalGet, { id: id.toUpperCase() });
      if (approval === null) throw notFound(id);
      return { approval, input };
    },
    // The complete call. A channel splits a long text into several messages.
    ({ approval: { id, summary, reason, state, expiresAt } }) => {
      const longest = Math.max(2, ...[...summary.matchAll(/`+/g)].map(([run]) => run.length));
      const fence = "`".repeat(longest + 1);
      const until = state === "pending" ? `pending until ${expiresAt}` : state;
      return `${id}  ${until}\n${fence}\n${summary}\n${fence}\n${reason}`;
    },
  ),

  implement(
    operations.approvalsDecide,
    async ({ decision, updatedInput, message, interrupt, ...given }, call) => {
      const id = given.id.toUpperCase();
      const decided = await call.deps.bus.request(store.approvalDecide, {
        opId: call.operationId(`approval:decide:${id}`),
        id,
        allow: decision === "allow",
        always: given.always,
        by: call.actor,
        ...(updatedInput === undefined ? {} : { updatedInput: JSON.stringify(updatedInput) }),
        ...(message === undefined ? {} : { message }),
        ...(interrupt === true ? { interrupt } : {}),
      });
      if (decided.outcome === "not_found") throw notFound(id);
      if (decided.outcome === "expired") {
        throw new OperationError("expired", `the approval ${id} expired without an answer; the call was denied`);
      }
      return decided;
    },
    ({ outcome, approval }, _call, { decision, always: wanted }) => {
      const what = approval === null ? "" : callText(approval, 200);
      if (outcome === "already") {
        return `${approval?.id ?? ""} was already ${approval?.state ?? ""} by ${approval?.decidedBy ?? "somebody"}. ${what}`;
      }
      if (decision === "deny") return `Denied. ${what}`;
      if (approval?.always === true) return `Allowed, along with similar calls in this session from now on. ${what}`;
      return `Allowed${wanted ? ", only this once: such calls require approval each time" : ""}. ${what}`;
    },
  ),
];
