// What the store serves. Writes carry `opId`: sent again with the same `opId` they answer what they answered first.
export { inboxGet, inboxPending, inboxPut, inboxReady } from "./store/inbox.ts";
export {
  FinishSchema,
  stepClaim,
  stepCommit,
  stepSettle,
  turnCancel,
  turnClaim,
  turnFinish,
  turnGet,
  type Finish,
} from "./store/turns.ts";
export { eventList, sessionGet, sessionList, sessionMessages } from "./store/sessions.ts";
export {
  outboxClaim,
  outboxGet,
  outboxPut,
  OutboxRowSchema,
  outboxReady,
  outboxSettle,
  type OutboxRow,
} from "./store/outbox.ts";
export { leadershipAcquire, leaseAcquire, leaseRelease, leaseRenew } from "./store/leases.ts";
export { ContactSchema, contactGet, pairingApprove, pairingList, pairingRequest } from "./store/contacts.ts";
export { OutgoingSchema, type Outgoing } from "./store/shared.ts";
export {
  documentChanged,
  documentDelete,
  documentGet,
  documentHistory,
  documentList,
  documentPut,
} from "./store/documents.ts";
