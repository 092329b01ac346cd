// Checkpoints: list them, and restore files from one.
import {
  checkpointRewind,
  folderWorkspaceId,
  operations,
  previewedOutcomes,
  store,
  type OutputOf,
  type RewindReport,
  type SessionSummary,
} from "@parley/contracts";
import { oneLine, pluralize } from "@parley/kit";
import { formatAge, shortId } from "./format.ts";
import { implement, OperationError, type OperationCall } from "./operation.ts";
import { awaitService } from "./session-service.ts";

const shownCheckpoints = 20;
const shownFiles = 40;
/** Files are restored one by one, and a concurrent rewind is waited for. A repeated request continues the same rewind. */
const rewindTimeoutMs = 120_000;
const commandTimeoutMs = 30_000;

type Checkpoint = OutputOf<typeof store.checkpointList>["checkpoints"][number];

/**
 * The store issues a permit, and a tool-runner executes the rewind with it. `asked`: the checkpoint as the request names it. A repeated `/rewind 1`
 * is the same rewind, although the list begins with that rewind by then.
 */
async function rewind(
  call: OperationCall,
  { sessionId, overrides: { workspace: folder } }: SessionSummary,
  target: { asked: string; checkpointId: string; dryRun: boolean },
  timeoutMs: number,
): Promise<RewindReport> {
  const { bus } = call.deps;
  const { asked, checkpointId: turnId, dryRun } = target;
  const opId = call.requestId(`rewind:${asked}:${dryRun}`);
  const workspace = folder === undefined ? {} : { workspace: folderWorkspaceId(folder) };
  const request = async () => {
    const { secret } = await bus.request(store.rewindPermit, { rewindId: opId, sessionId, turnId });
    return bus.request(checkpointRewind, { opId, sessionId, turnId, dryRun, secret, ...workspace }, { timeoutMs });
  };
  return awaitService("tool-runner", request());
}

function line({ checkpointId, kind, at, text, files }: Checkpoint, index: number): string {
  const what = kind === "rewind" ? "a rewind" : oneLine(text, 80);
  return `${index + 1}. ${shortId(checkpointId)}  ${formatAge(at, Date.now())} · ${pluralize(files, "file")} · before ${what}`;
}

function reportText({ counts, files, omitted, checkpointId }: RewindReport): string {
  const numbers = (["restored", "removed", "skipped", "failed"] as const).map(
    (outcome) => `${counts[outcome]} ${outcome}`,
  );
  const lines = files.map(({ path, outcome, reason }) => {
    const what = checkpointId === null ? previewedOutcomes[outcome] : outcome;
    return `${what}  ${path}${reason === null ? "" : ` (${oneLine(reason, 160)})`}`;
  });
  const shown = lines.slice(0, shownFiles);
  const more = lines.length - shown.length + omitted;
  const head = checkpointId === null ? "Dry run" : "Done";
  const undo = checkpointId === null ? [] : [`/rewind ${shortId(checkpointId)} undoes it.`];
  return [`${head}: ${numbers.join(", ")}.`, ...shown, ...(more > 0 ? [`… and ${more} more`] : []), ...undo].join("\n");
}

export const checkpointOperations = [
  implement(
    operations.checkpointsList,
    async ({ id, limit }, call) => {
      const { sessionId } = await call.session(id);
      return call.deps.bus.request(store.checkpointList, { sessionId, limit });
    },
    ({ checkpoints }) =>
      checkpoints.length === 0
        ? "No turn in this session has changed files."
        : `${checkpoints.map(line).join("\n")}\n/rewind <n> restores the files to their state before that turn; --dry-run only lists the changes.`,
  ),

  implement(operations.checkpointsRewind, async ({ id, checkpointId, dryRun }, call) => {
    return rewind(call, await call.session(id), { asked: checkpointId, checkpointId, dryRun }, rewindTimeoutMs);
  }),

  implement(operations.checkpointsRewindListed, async ({ id, checkpoint: named, dryRun }, call) => {
    const session = await call.session(id);
    const { sessionId } = session;
    const { checkpoints } = await call.deps.bus.request(store.checkpointList, { sessionId, limit: shownCheckpoints });
    const found = /^\d{1,3}$/.test(named)
      ? checkpoints[Number(named) - 1]
      : checkpoints.find(({ checkpointId: id }) => id === named || shortId(id) === named.toLowerCase());
    if (found === undefined) {
      throw new OperationError("not_found", `there is no checkpoint "${named}"; /checkpoint list shows them`);
    }
    const { checkpointId } = found;
    return reportText(await rewind(call, session, { asked: named, checkpointId, dryRun }, commandTimeoutMs));
  }),
];
