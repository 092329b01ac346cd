// /checkpoint and /rewind: list the checkpoints of a session and restore files from one.
import { store, type RewindReport } from "@parley/contracts";
import { nameUuid } from "@parley/kit";
import { requestRewind } from "./request-rewind.ts";
import { answerOf } from "./session-service.ts";
import { formatAge, oneLine, shortId, pluralize } from "./format.ts";
import { currentSession, CommandError, type Command, type Invocation } from "./hand-written.ts";
import { UsageError } from "./operation.ts";

const listed = 20;
/** Files are restored one by one, and a concurrent rewind is waited for. A repeated request continues the same rewind. */
const rewindTimeoutMs = 30_000;

type Checkpoint = Awaited<ReturnType<typeof checkpointsOf>>[number];

async function checkpointsOf({ deps }: Invocation, sessionId: string) {
  return (await deps.bus.request(store.checkpointList, { sessionId, limit: listed })).checkpoints;
}

function line({ checkpointId, kind, at, text, files }: Checkpoint, index: number): string {
  const what = kind === "rewind" ? "a rewind" : oneLine(text, 80);
  return `${index + 1}. ${shortId(checkpointId)}  ${formatAge(at, Date.now())} · ${pluralize(files, "file")} · before ${what}`;
}

async function list(invocation: Invocation): Promise<string> {
  const { sessionId } = await currentSession(invocation);
  const checkpoints = await checkpointsOf(invocation, sessionId);
  if (checkpoints.length === 0) return "No turn in this session has changed files.";
  return `${checkpoints.map(line).join("\n")}\n/rewind <n> restores the files to their state before that turn; --dry-run only lists the changes.`;
}

function reportText({ counts, files, omitted, checkpointId }: RewindReport): string {
  const numbers = (["restored", "removed", "skipped", "failed"] as const).map(
    (outcome) => `${counts[outcome]} ${outcome}`,
  );
  const lines = files.map(
    ({ path, outcome, reason }) => `${outcome}  ${path}${reason === null ? "" : ` (${oneLine(reason, 160)})`}`,
  );
  const shown = lines.slice(0, 40);
  const more = lines.length - shown.length + omitted;
  const head = checkpointId === null ? "Dry run" : "Done";
  const undo = checkpointId === null ? [] : [`/rewind ${shortId(checkpointId)} undoes it.`];
  return [`${head}: ${numbers.join(", ")}.`, ...shown, ...(more > 0 ? [`… and ${more} more`] : []), ...undo].join("\n");
}

async function rewind(invocation: Invocation, words: readonly string[]): Promise<string> {
  const dryRun = words.some((word) => word === "--dry-run");
  const [named, ...others] = words.filter((word) => word !== "--dry-run");
  if (named === undefined) throw new UsageError("A checkpoint is required: its number in /checkpoint list, or its id.");
  if (others.length > 0) throw new UsageError(`Unexpected argument: "${others.join(" ")}".`);
  const { sessionId } = await currentSession(invocation);
  const checkpoints = await checkpointsOf(invocation, sessionId);
  const found = /^\d{1,3}$/.test(named)
    ? checkpoints[Number(named) - 1]
    : checkpoints.find(({ checkpointId }) => checkpointId === named || shortId(checkpointId) === named.toLowerCase());
  if (found === undefined) throw new CommandError(`No checkpoint "${named}" found. /checkpoint list shows them.`);
  const { bus } = invocation.deps;
  const order = { opId: nameUuid(`rewind:${invocation.speaker.ref}`), sessionId, turnId: found.checkpointId, dryRun };
  return reportText(await answerOf("tool-runner", requestRewind(bus, order, rewindTimeoutMs)));
}

export const checkpointCommands: readonly Command[] = [
  {
    name: "/checkpoint",
    usage: "/checkpoint [list | rewind <n|id> [--dry-run]]",
    summary: "list checkpoints of files that turns changed, or restore one",
    async run(invocation) {
      const [what = "list", ...words] = invocation.words;
      if (what.toLowerCase() === "list") return list(invocation);
      if (what.toLowerCase() === "rewind") return rewind(invocation, words);
      throw new UsageError(`Unknown subcommand: /checkpoint ${what}.`);
    },
  },
  {
    name: "/rewind",
    usage: "/rewind <n|id> [--dry-run]",
    summary: "restore files to their state before a turn",
    run: (invocation) => rewind(invocation, invocation.words),
  },
];
