// A typed `y` or `n` as the decision of the approval question that was sent to the conversation.
import { operations, store } from "@parley/contracts";
import { approvalOperations } from "./approvals.ts";
import type { OperationDeps, Speaker } from "./operation.ts";
import { parseQuickAnswer } from "./quick-answer.ts";
import { callOperation, commandFailure } from "./registry.ts";
import { nameOf, OperationCall } from "./operation.ts";

const decide = approvalOperations.find(({ definition }) => definition === operations.approvalsDecide);

/**
 * Decides the pending approval that this conversation was asked about. Returns the text for the owner; undefined when the text is no such
 * answer or nothing is pending, so that it is a message for the agent.
 */
export async function answerApproval(deps: OperationDeps, text: string, speaker: Speaker): Promise<string | undefined> {
  const answer = parseQuickAnswer(text);
  if (answer === undefined || decide === undefined) return undefined;
  const { channel, account, conversation } = speaker;
  const askedIn = { channel, account, conversation };
  const { approvals } = await deps.bus.request(store.approvalList, { askedIn, pending: true, limit: 20 });
  const [pending, ...others] = approvals;
  if (pending === undefined) return undefined;
  if (others.length > 0) {
    const ids = approvals.map(({ id }) => id).join(", ");
    return `${approvals.length} tool calls wait for your decision: ${ids}. Answer with /approve <id> or /deny <id>.`;
  }
  const by = nameOf(speaker);
  try {
    const input = { id: pending.id, ...answer };
    const decided = await callOperation(deps, decide, input, { speaker, by });
    return await decide.text(decided, new OperationCall(deps, speaker, by), input);
  } catch (error) {
    return commandFailure(error);
  }
}
