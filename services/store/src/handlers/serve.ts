// Serves every request of the store. A request without a handler, or with two, does not compile.
import type { Served } from "@parley/bus";
import type { ServiceMetrics } from "@parley/chassis";
import { store, type RequestContract } from "@parley/contracts";
import type { Handlers, StoreContext } from "./handler.ts";
import { accountHandlers } from "./accounts/accounts.ts";
import { addedAccountHandlers } from "./accounts/added.ts";
import { outageHandlers } from "./accounts/outages.ts";
import { measured } from "./measure.ts";
import { blobHandlers } from "./blobs/blobs.ts";
import { checkpointHandlers } from "./checkpoints/checkpoints.ts";
import { permitHandlers } from "./checkpoints/rewind-permits.ts";
import { rewindHandlers } from "./checkpoints/rewinds.ts";
import { consoleHandlers } from "./console/console.ts";
import { contactHandlers } from "./contacts/contacts.ts";
import { personLimitHandlers } from "./contacts/limits.ts";
import { leadershipHandlers } from "./coordination/leadership.ts";
import { leaseHandlers } from "./coordination/leases.ts";
import { mcpHandlers } from "./coordination/mcp.ts";
import { callDocumentHandlers } from "./documents/call-documents.ts";
import { documentHandlers } from "./documents/documents.ts";
import { rewindDocumentHandlers } from "./documents/rewind-documents.ts";
import { changeHandlers } from "./inbox/changes.ts";
import { groupContextHandlers } from "./inbox/group-context.ts";
import { groupHandlers } from "./inbox/left-group.ts";
import { fileHandlers } from "./inbox/files.ts";
import { inboxHandlers } from "./inbox/inbox.ts";
import { queueHandlers } from "./inbox/queue.ts";
import { workHandlers } from "./inbox/work.ts";
import { consolidationHandlers } from "./memory/consolidation.ts";
import { memoryHandlers } from "./memory/memory.ts";
import { noteHandlers } from "./memory/notes.ts";
import { vectorHandlers } from "./memory/vectors.ts";
import { outboxHandlers } from "./outbox/outbox.ts";
import { processHandlers } from "./processes/processes.ts";
import { approvalHandlers } from "./questions/approvals.ts";
import { questionListHandlers } from "./questions/list.ts";
import { pollHandlers } from "./questions/poll.ts";
import { questionHandlers } from "./questions/questions.ts";
import { fireHandlers } from "./schedules/fire.ts";
import { heartbeatHandlers } from "./schedules/heartbeat.ts";
import { scheduleHandlers } from "./schedules/schedules.ts";
import { compactHandlers } from "./sessions/compact.ts";
import { forkHandlers } from "./sessions/fork.ts";
import { historyHandlers } from "./sessions/history.ts";
import { routeHandlers } from "./sessions/routes.ts";
import { listHandlers } from "./sessions/list.ts";
import { sessionHandlers } from "./sessions/sessions.ts";
import { todoHandlers } from "./sessions/todos.ts";
import { usageHandlers } from "./sessions/usage.ts";
import { commitHandlers } from "./steps/commit.ts";
import { programCallHandlers } from "./steps/program-calls.ts";
import { samplingHandlers } from "./steps/sampling.ts";
import { stepHandlers } from "./steps/steps.ts";
import { tokenHandlers } from "./tokens/tokens.ts";
import { appendHandlers } from "./turns/append.ts";
import { claimHandlers } from "./turns/claim.ts";
import { endHandlers } from "./turns/end.ts";
import { parkHandlers } from "./turns/park.ts";
import { spawnHandlers } from "./turns/spawn.ts";
import { turnHandlers } from "./turns/turns.ts";
import { replyHandlers } from "./voice/replies.ts";
import { voiceHandlers } from "./voice/sessions.ts";
import { utteranceHandlers } from "./voice/utterances.ts";

const handlers: Handlers = combined(
  accountHandlers,
  addedAccountHandlers,
  outageHandlers,
  blobHandlers,
  checkpointHandlers,
  permitHandlers,
  rewindHandlers,
  consoleHandlers,
  contactHandlers,
  personLimitHandlers,
  leadershipHandlers,
  leaseHandlers,
  mcpHandlers,
  callDocumentHandlers,
  documentHandlers,
  rewindDocumentHandlers,
  changeHandlers,
  groupContextHandlers,
  groupHandlers,
  fileHandlers,
  inboxHandlers,
  queueHandlers,
  workHandlers,
  consolidationHandlers,
  memoryHandlers,
  noteHandlers,
  vectorHandlers,
  outboxHandlers,
  processHandlers,
  approvalHandlers,
  questionListHandlers,
  pollHandlers,
  questionHandlers,
  fireHandlers,
  heartbeatHandlers,
  scheduleHandlers,
  compactHandlers,
  forkHandlers,
  historyHandlers,
  routeHandlers,
  listHandlers,
  sessionHandlers,
  todoHandlers,
  usageHandlers,
  commitHandlers,
  programCallHandlers,
  samplingHandlers,
  stepHandlers,
  appendHandlers,
  claimHandlers,
  endHandlers,
  parkHandlers,
  spawnHandlers,
  tokenHandlers,
  turnHandlers,
  replyHandlers,
  voiceHandlers,
  utteranceHandlers,
);

export function serveRequests(context: StoreContext, metrics: ServiceMetrics): Served[] {
  return Object.entries(handlers).map(([name, handle]) => {
    const contract = store[name as keyof Handlers] as RequestContract;
    const verb = contract.subject.replace(/^store\./, "");
    return context.bus.serve(contract, (input) =>
      measured(metrics, verb, () => (handle as AnyHandler)(context, input)),
    );
  });
}

type AnyHandler = (context: StoreContext, input: unknown) => Promise<unknown>;

// Both types pass their result along, because TypeScript limits the depth of other recursions to about fifty.
type Joined<T extends readonly object[], J = object> = T extends readonly [infer H, ...infer R extends object[]]
  ? Joined<R, J & H>
  : J;
/** The keys of more than one of these tables. */
type Repeated<T extends readonly object[], Known = never, Twice = never> = T extends readonly [
  infer H,
  ...infer R extends object[],
]
  ? Repeated<R, Known | keyof H, Twice | (Known & keyof H)>
  : Twice;

function combined<const T extends readonly object[]>(
  ...tables: [Repeated<T>] extends [never] ? T : Repeated<T>[]
): Joined<T> {
  return Object.assign({}, ...tables) as Joined<T>;
}
