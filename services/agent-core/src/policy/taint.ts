// Whose turn it is and whether its model sees tainted content; pure. Permissions, documents and memory depend on it.
import {
  containsUntrustedContent,
  isUntrustedInput,
  type ClaimedTurn,
  type Containment,
  type DocumentRights,
  type Message,
  type ToolDescriptor,
  type ViewRecord,
} from "@parley/contracts";
import { isUntrusted, principalOf, isTaintSource } from "./principal.ts";
import type { PermissionTool, ToolSource } from "./tool-traits.ts";

/** The input of permission checks, document access and memory access. */
export interface Taint {
  /** The model is shown content that is, or may be, derived from untrusted content. */
  untrusted: boolean;
  /** A message from a group is part of the running turn. */
  group: boolean;
}

/** Memory about the owner is only for conversations with the owner alone; a group never is one. */
export function audienceOf({ root }: Pick<ClaimedTurn, "root">, { group }: Pick<Taint, "group">): "owner" | "others" {
  return principalOf(root.trust) === "owner" && !group ? "owner" : "others";
}

/** Commands in a container can read the tool-runner's credential, so a container counts as isolation only for the owner's commands. */
export function isContainedFor(
  { root }: Pick<ClaimedTurn, "root">,
  { containment }: { containment: Containment },
): boolean {
  return containment === "sandbox" || (containment === "container" && principalOf(root.trust) === "owner");
}

/**
 * A call's rights to documents: file tools read and write them, and only read them in conversations with other people.
 * Tools that execute programs or read untrusted content work on the disk and need none.
 */
export function documentRights(
  { effects }: Pick<ToolDescriptor, "effects">,
  audience: "owner" | "others",
): DocumentRights {
  if (effects.includes("executes") || effects.includes("reads_untrusted")) return "none";
  if (effects.includes("writes_files") && audience === "owner") return "write";
  return effects.includes("reads_files") ? "read" : "none";
}

/** An untrusted sender started the turn, or the model is shown untrusted content in it. */
export function isTainted({ root }: Pick<ClaimedTurn, "root">, { untrusted }: Pick<Taint, "untrusted">): boolean {
  return untrusted || isUntrusted(root.trust);
}

export function taintOf(messages: readonly Message[], toolbox: ToolSource): Taint {
  return {
    untrusted: messages.some((message) => isTaintedMessage(message, toolbox)),
    group: messages.some((message) => message.from?.direct === false),
  };
}

/**
 * Whether a request with `messages` under this record is tainted; the record carries the taint of compacted messages.
 */
export function showsTaint(
  record: Pick<ViewRecord, "tainted"> | null,
  messages: readonly Message[],
  toolbox: ToolSource,
): boolean {
  return record?.tainted === true || messages.some((message) => isTaintedMessage(message, toolbox));
}

/** Detects taint in successive requests of a turn; messages checked under the same record are not checked again. */
export class TaintScan {
  #record: ViewRecord | null = null;
  #clean = 0;

  /** `pending`: how many of `messages`, at the end, are uncommitted and may change. Returns the same as `showsTaint`. */
  shows(record: ViewRecord | null, messages: readonly Message[], pending: number, toolbox: ToolSource): boolean {
    // Under one record, the messages of a turn's requests only grow at their end.
    if (record !== this.#record) this.#clean = 0;
    this.#record = record;
    if (showsTaint(record, messages.slice(this.#clean), toolbox)) return true;
    this.#clean = messages.length - pending;
    return false;
  }
}

/** Combines two parts of a turn. */
export function mergeTaint(one: Taint, other: Taint): Taint {
  return { untrusted: one.untrusted || other.untrusted, group: one.group || other.group };
}

/** By its stored mark; without one (older messages, uncommitted results) by its sender and its parts. */
function isTaintedMessage(message: Message, toolbox: ToolSource): boolean {
  if (message.tainted === true) return true;
  let evidence = evidences.get(message);
  if (evidence === undefined) {
    evidence = evidenceIn(message);
    evidences.set(message, evidence);
  }
  return evidence.untrusted || evidence.tools.some((name) => readsUntrusted(name, toolbox));
}

/** The evidence in a message that does not depend on the catalog. */
interface TaintEvidence {
  untrusted: boolean;
  /** Tools whose results it contains, except results that the store knows to be untainted. */
  tools: readonly string[];
}

/** Cached: messages never change, and every request checks all messages of the view. */
const evidences = new WeakMap<Message, TaintEvidence>();

function evidenceIn({ from, role, parts }: Message): TaintEvidence {
  const results = parts.filter((part) => part.type === "tool_result").filter(({ refused }) => refused !== true);
  const untrusted =
    (from !== undefined && isUntrustedInput(from, parts)) ||
    // Memory and the file tools mark a document's untrusted lines.
    results.some((result) => result.untrusted === true || containsUntrustedContent(result.content)) ||
    parts.some((part) => {
      // Recalled memory is inserted as a user message without a sender.
      if (part.type === "text") return from === undefined && role === "user" && containsUntrustedContent(part.text);
      return part.type === "blob" && from === undefined;
    });
  const tools = results.flatMap(({ name, untainted }) => (untainted === true ? [] : [name]));
  return { untrusted, tools: [...new Set(tools)] };
}

/** Whether this tool's results are untrusted content. */
export function readsUntrusted(name: string, toolbox: ToolSource): boolean {
  const tool = toolbox.find(name);
  if (tool === undefined) return false;
  let tainting = taintingTools.get(tool.descriptor);
  if (tainting === undefined) {
    tainting = isTaintSource(permissionTool(tool, false));
    taintingTools.set(tool.descriptor, tainting);
  }
  return tainting;
}

/** Cached: a descriptor's effects never change, and every result in the view needs them. */
const taintingTools = new WeakMap<ToolDescriptor, boolean>();

export function permissionTool({ descriptor }: { descriptor: ToolDescriptor }, contained: boolean): PermissionTool {
  const { name, readOnly, aliases, risk, effects } = descriptor;
  return { name, readOnly, aliases, risk, effects, contained };
}
