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

/** Characters of a call in the list; the number of hidden ones is part of the line. */
const listedCharacters = 120;

function line(approval: Approval): string {
  const { id, reason, expiresAt, hiddenCharacters = 0 } = approval;
  const call = callText(approval, Number.POSITIVE_INFINITY);
  const hidden = hiddenCharacters + Math.max(0, call.length - listedCharacters);
  const more = hidden === 0 ? "" : `\n  ${hidden} more characters hidden: /approvals ${id} shows all`;
  return `${id}  ${call.slice(0, listedCharacters).toWellFormed()}${more}\n  ${oneLine(reason, 240)} Without an answer by ${expiresAt} it is denied.`;
}

/** One question with the whole call; a channel sends it in as many messages as it needs. */
async function whole({ deps }: Invocation, id: string): Promise<string> {
  const { approval } = await deps.bus.request(store.approvalGet, { id });
  if (approval === null) throw new Refusal(`There is no question ${id}. /approvals lists those that wait.`);
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
    usage: "/approvals [id]",
    summary: "tool calls that wait for approval; with an id: all of one call",
    async run(invocation) {
      const { deps, words } = invocation;
      const [id, ...others] = words;
      if (others.length > 0) throw new UsageError("Name one question.");
      if (id !== undefined) return whole(invocation, id.toUpperCase());
      const { approvals } = await deps.bus.request(store.approvalList, { pending: true, limit: listed });
      if (approvals.length === 0) return "Nothing waits for a yes.";
      return `${approvals.map(line).join("\n")}\nAnswer with /approve <id> or /deny <id>.`;
    },
  },
];
