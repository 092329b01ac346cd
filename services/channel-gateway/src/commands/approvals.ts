// A person's yes or no to a tool call that waits for it.
import { store, type Approval } from "@parley/contracts";
import { oneLine } from "../words.ts";
import { nameOf, Refusal, UsageError, type Command, type Invocation } from "./command.ts";

const listed = 20;

async function decide({ deps, speaker, words }: Invocation, allow: boolean): Promise<string> {
  const [id, more, ...others] = words;
  if (id === undefined) throw new UsageError("Say which one.");
  if (others.length > 0 || (more !== undefined && (!allow || more.toLowerCase() !== "always"))) {
    throw new UsageError(`"${[more, ...others].join(" ")}" means nothing here.`);
  }
  const always = more !== undefined;
  const decision = { id: id.toUpperCase(), allow, always, by: nameOf(speaker) };
  const { outcome, approval } = await deps.bus.request(store.approvalDecide, decision);
  if (approval === null)
    throw new Refusal(`There is no question ${id.toUpperCase()}. /approvals lists those that wait.`);
  const what = callText(approval, 200);
  switch (outcome) {
    case "decided":
      return `${allow ? "Allowed" : "Denied"}${approval.always ? ", and calls like it in this session from now on" : ""}. ${what}`;
    case "already":
      return `${approval.id} was ${approval.state} already by ${approval.decidedBy ?? "somebody"}. ${what}`;
    default:
      return `${approval.id} is over since ${approval.expiresAt}; nobody answered, which is a no. ${what}`;
  }
}

/** A summary begins with the tool's own name, unless the call used another one. */
function callText({ tool, summary }: Pick<Approval, "tool" | "summary">, maxCharacters: number): string {
  return oneLine(summary.startsWith(tool) ? summary : `${tool}: ${summary}`, maxCharacters);
}

function line({ id, tool, summary, reason, expiresAt }: Approval): string {
  return `${id}  ${callText({ tool, summary }, 120)}\n  ${oneLine(reason, 120)} No answer by ${expiresAt} is a no.`;
}

export const approvalCommands: readonly Command[] = [
  {
    name: "/approve",
    usage: "/approve <id> [always]",
    summary: "say yes to a tool call that waits; always: to calls like it in this session, too",
    run: (invocation) => decide(invocation, true),
  },
  {
    name: "/deny",
    usage: "/deny <id>",
    summary: "say no to a tool call that waits",
    run: (invocation) => decide(invocation, false),
  },
  {
    name: "/approvals",
    usage: "/approvals",
    summary: "tool calls that wait for a yes",
    async run({ deps }) {
      const { approvals } = await deps.bus.request(store.approvalList, { pending: true, limit: listed });
      if (approvals.length === 0) return "Nothing waits for a yes.";
      return `${approvals.map(line).join("\n")}\nAnswer with /approve <id> or /deny <id>.`;
    },
  },
];
