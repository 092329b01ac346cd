// Files as they were before a turn changed them.
import { store, type RewindReport } from "@parley/contracts";
import { uuidOf } from "../digest.ts";
import { requestRewind } from "../request-rewind.ts";
import { answerOf } from "../session-acts.ts";
import { ago, oneLine, shortId, some } from "../words.ts";
import { currentSession, Refusal, UsageError, type Command, type Invocation } from "./command.ts";

const listed = 20;
/** Many files are put back one by one, and another rewind is waited for. Asked again it goes on. */
const rewindTimeoutMs = 30_000;

type Checkpoint = Awaited<ReturnType<typeof checkpointsOf>>[number];

async function checkpointsOf({ deps }: Invocation, sessionId: string) {
  return (await deps.bus.request(store.checkpointList, { sessionId, limit: listed })).checkpoints;
}

function line({ checkpointId, kind, at, text, files }: Checkpoint, index: number): string {
  const what = kind === "rewind" ? "a rewind" : oneLine(text, 80);
  return `${index + 1}. ${shortId(checkpointId)}  ${ago(at, Date.now())} · ${some(files, "file")} · before ${what}`;
}

async function list(invocation: Invocation): Promise<string> {
  const { sessionId } = await currentSession(invocation);
  const checkpoints = await checkpointsOf(invocation, sessionId);
  if (checkpoints.length === 0) return "No turn of this session has changed files.";
  return `${checkpoints.map(line).join("\n")}\n/rewind <n> puts the files back to how they were before it; --dry-run only says what would happen.`;
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
  const head = checkpointId === null ? "This would happen" : "Done";
  const undo = checkpointId === null ? [] : [`/rewind ${shortId(checkpointId)} undoes it.`];
  return [`${head}: ${numbers.join(", ")}.`, ...shown, ...(more > 0 ? [`… and ${more} more`] : []), ...undo].join("\n");
}

async function rewind(invocation: Invocation, words: readonly string[]): Promise<string> {
  const dryRun = words.some((word) => word === "--dry-run");
  const [named, ...others] = words.filter((word) => word !== "--dry-run");
  if (named === undefined) throw new UsageError("Say which one: its number in /checkpoint list, or its id.");
  if (others.length > 0) throw new UsageError(`"${others.join(" ")}" means nothing here.`);
  const { sessionId } = await currentSession(invocation);
  const checkpoints = await checkpointsOf(invocation, sessionId);
  const found = /^\d{1,3}$/.test(named)
    ? checkpoints[Number(named) - 1]
    : checkpoints.find(({ checkpointId }) => checkpointId === named || shortId(checkpointId) === named.toLowerCase());
  if (found === undefined) throw new Refusal(`There is no checkpoint "${named}". /checkpoint list shows them.`);
  const { bus } = invocation.deps;
  const order = { opId: uuidOf(`rewind:${invocation.speaker.ref}`), sessionId, turnId: found.checkpointId, dryRun };
  return reportText(await answerOf("tool-runner", requestRewind(bus, order, rewindTimeoutMs)));
}

export const checkpointCommands: readonly Command[] = [
  {
    name: "/checkpoint",
    usage: "/checkpoint [list | rewind <n|id> [--dry-run]]",
    summary: "how files were before turns changed them",
    async run(invocation) {
      const [what = "list", ...words] = invocation.words;
      if (what.toLowerCase() === "list") return list(invocation);
      if (what.toLowerCase() === "rewind") return rewind(invocation, words);
      throw new UsageError(`/checkpoint knows no "${what}".`);
    },
  },
  {
    name: "/rewind",
    usage: "/rewind <n|id> [--dry-run]",
    summary: "put files back to how they were before a turn",
    run: (invocation) => rewind(invocation, invocation.words),
  },
];
