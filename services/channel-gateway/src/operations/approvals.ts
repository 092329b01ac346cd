// /approve, /deny and /approvals: decide and list tool calls that wait for approval.
import { store, type Approval } from "@parley/contracts";
import { oneLine } from "./format.ts";
import { nameOf, CommandError, UsageError, type Command, type Invocation } from "./operation.ts";

const listed = 20;

async function decide({ deps, speaker, words }: Invocation, allow: boolean): Promise<string> {
  const [id, more, ...others] = words;
  if (id === undefined) throw new UsageError("An approval id is required.");
  if (others.length > 0 || (more !== undefined && (!allow || more.toLowerCase() !== "always"))) {
    throw new UsageError(`Unexpected argument: "${[more, ...others].join(" ")}".`);
  }
  const always = more !== undefined;
  const decision = { id: id.toUpperCase(), allow, always, by: nameOf(speaker) };
  const { outcome, approval } = await deps.bus.request(store.approvalDecide, decision);
  if (approval === null)
    throw new CommandError(`No approval ${id.toUpperCase()} found. /approvals lists the pending ones.`);
  const what = callText(approval, 200);
  switch (outcome) {
    case "decided":
      return `${allow ? "Allowed" : "Denied"}${approval.always ? ", along with similar calls in this session from now on" : ""}. ${what}`;
    case "already":
      return `${approval.id} was already ${approval.state} by ${approval.decidedBy ?? "somebody"}. ${what}`;
    default:
      return `${approval.id} expired at ${approval.expiresAt} without an answer, so the call was denied. ${what}`;
  }
}

/** A summary begins with the tool's name, unless the call used an alias. */
function callText({ tool, summary }: Pick<Approval, "tool" | "summary">, maxCharacters: number): string {
  return oneLine(summary.startsWith(tool) ? summary : `${tool}: ${summary}`, maxCharacters);
}

/** Characters of a call shown in the list; the line reports how many are hidden. */
const listedCharacters = 120;

function line(approval: Approval): string {
  const { id, reason, expiresAt, hiddenCharacters = 0 } = approval;
  const call = callText(approval, Number.POSITIVE_INFINITY);
  const hidden = hiddenCharacters + Math.max(0, call.length - listedCharacters);
  const more = hidden === 0 ? "" : `\n  ${hidden} more characters hidden: /approvals ${id} shows all`;
  return `${id}  ${call.slice(0, listedCharacters).toWellFormed()}${more}\n  ${oneLine(reason, 240)} Denied automatically at ${expiresAt}.`;
}

/** One approval with the complete call. A channel splits a long text into several messages. */
async function whole({ deps }: Invocation, id: string): Promise<string> {
  const { approval } = await deps.bus.request(store.approvalGet, { id });
  if (approval === null) throw new CommandError(`No approval ${id} found. /approvals lists the pending ones.`);
  const { summary, reason, state, expiresAt } = approval;
  const longest = Math.max(2, ...[...summary.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const until = state === "pending" ? `pending until ${expiresAt}` : state;
  return `${approval.id}  ${until}\n${fence}\n${summary}\n${fence}\n${reason}`;
}

export const approvalCommands: readonly Command[] = [
  {
    name: "/approve",
    usage: "/approve <id> [always]",
    summary: "approve a pending tool call; always: also allow similar calls in this session",
    run: (invocation) => decide(invocation, true),
  },
  {
    name: "/deny",
    usage: "/deny <id>",
    summary: "deny a pending tool call",
    run: (invocation) => decide(invocation, false),
  },
  {
    name: "/approvals",
    usage: "/approvals [id]",
    summary: "list pending tool calls; with an id: show one call in full",
    async run(invocation) {
      const { deps, words } = invocation;
      const [id, ...others] = words;
      if (others.length > 0) throw new UsageError("Only one approval id is allowed.");
      if (id !== undefined) return whole(invocation, id.toUpperCase());
      const { approvals } = await deps.bus.request(store.approvalList, { pending: true, limit: listed });
      if (approvals.length === 0) return "No tool call waits for approval.";
      return `${approvals.map(line).join("\n")}\nAnswer with /approve <id> or /deny <id>.`;
    },
  },
];
