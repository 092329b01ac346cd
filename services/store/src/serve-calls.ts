// Serves the requests of tool-runners, each for one call with its grant or for one rewind with its permit. Grants and permits are checked
// here; the handlers take session, author and audience only from them.
import type { Bus, Served } from "@parley/bus";
import { store, type Grant, type InputOf, type OutputOf, type RequestContract } from "@parley/contracts";
import type { BlobRules } from "./blobs/put.ts";
import type { Database } from "./db/database.ts";
import { Grants } from "./grants.ts";
import type { ServedMemory } from "./handlers/memory/serve.ts";
import * as blobs from "./handlers/blobs/blobs.ts";
import * as documents from "./handlers/documents/call-documents.ts";
import * as checkpoints from "./handlers/checkpoints/checkpoints.ts";
import * as processes from "./handlers/processes/processes.ts";
import * as questions from "./handlers/questions/poll.ts";
import { putDocumentBack } from "./handlers/documents/rewind-documents.ts";
import { permitted, type PermittedRewind } from "./handlers/checkpoints/rewind-permits.ts";
import * as rewinds from "./handlers/checkpoints/rewinds.ts";
import * as steps from "./handlers/steps/steps.ts";

export function serveCalls(bus: Bus, database: Database, blobRules: BlobRules, memory: ServedMemory): Served[] {
  const grants = new Grants(database);
  const granted = <C extends RequestContract>(
    contract: C,
    handle: (grant: Grant, input: InputOf<C> & { grant: string }) => Promise<OutputOf<C>>,
  ): Served =>
    bus.serve(contract, async (input) => {
      const request = input as InputOf<C> & { grant: string };
      return handle(await grants.check(request.grant), request);
    });
  const rewinding = <C extends RequestContract>(
    contract: C,
    handle: (permit: PermittedRewind, input: InputOf<C>) => Promise<OutputOf<C>>,
  ): Served =>
    bus.serve(contract, async (input) => {
      const { rewind } = input as { rewind: store.RewindPermit };
      return handle(await permitted(database, rewind), input);
    });
  const thenIndexed = async <R>(change: Promise<R>): Promise<R> => {
    const output = await change;
    memory.changed();
    return output;
  };
  return [
    granted(store.stepClaim, (grant, input) => steps.claim(database, grant, input)),
    granted(store.callSettle, (grant, input) => steps.settleCall(database, bus, grant, input)),
    granted(store.callDocumentList, (grant, input) => documents.list(database, grant, input)),
    granted(store.callDocumentGet, (grant, input) => documents.get(database, grant, input)),
    granted(store.callDocumentLines, (grant, input) => documents.lines(database, grant, input)),
    granted(store.callDocumentPut, (grant, input) => thenIndexed(documents.put(database, bus, grant, input))),
    bus.serve(store.callBlobBegin, async (input) =>
      blobs.beginForCall(
        database,
        blobRules,
        input.grant === undefined ? null : await grants.check(input.grant),
        input,
      ),
    ),
    bus.serve(store.callBlobPut, (input) => blobs.put(database, input)),
    bus.serve(store.callBlobCommit, (input) => blobs.commit(database, blobRules, input)),
    granted(store.callBlobGet, (grant, input) => blobs.getForCall(database, blobRules, grant, input)),
    granted(store.questionRaise, (grant, input) => questions.ask(database, bus, grant, input)),
    granted(store.questionLook, (grant, input) => questions.poll(database, grant, input)),
    granted(store.processBegin, (grant, input) => processes.begin(database, grant, input)),
    bus.serve(store.processTold, async ({ by, ids }) =>
      processes.markReported(database, "grant" in by ? await grants.check(by.grant) : by, { ids }),
    ),
    bus.serve(store.checkpointTrack, async ({ by, files }) => {
      const checked =
        "grant" in by ? { grant: await grants.check(by.grant) } : { permit: await permitted(database, by.rewind) };
      return checkpoints.keep(database, checked, { files });
    }),
    rewinding(store.checkpointFiles, (permit, input) => checkpoints.files(database, permit, input)),
    rewinding(store.rewindBegin, (permit, { runner, ttlMs }) => rewinds.begin(database, { ...permit, runner, ttlMs })),
    rewinding(store.rewindRenew, (permit, input) => rewinds.renew(database, permit, input)),
    rewinding(store.rewindEnd, (permit, input) => rewinds.end(database, permit, input)),
    rewinding(store.rewindDocument, (permit, input) => thenIndexed(putDocumentBack(database, bus, permit, input))),
  ];
}
