// All operations, by noun. Each export is one definition.
export { approvalsDecide, approvalsGet, approvalsList } from "./approvals.ts";
