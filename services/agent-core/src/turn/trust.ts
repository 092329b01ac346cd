// Whose turn it is and whether what its model is shown is tainted; pure. Permissions, documents and memory go by it.
import {
  isUnderWarning,
  isUntrustedInput,
  type ClaimedTurn,
  type DocumentRights,
  type Message,
  type ToolDescriptor,
  type ViewRecord,
} from "@parley/contracts";
import { isUntrusted, speakerOf, taints } from "../permissions/speaker.ts";
import type { PermissionTool } from "../permissions/tool-facts.ts";
import type { Toolbox, TurnTool } from "./toolbox.ts";

/** What permissions, documents and memory go by. */
export interface Heard {
  /** What the model is shown is, or may be, derived from untrusted content. */
  untrusted: boolean;
  /** Somebody in a group has a part in the running turn. */
  group: boolean;
}

/** What the agent remembers of its owner is for the owner's own conversations; a group is never one. */
export function audienceOf({ root }: Pick<ClaimedTurn, "root">, { group }: Pick<Heard, "group">): "owner" | "others" {
  return speakerOf(root.trust) === "owner" && !group ? "owner" : "others";
}

/** Commands in a container can read the tool-runner's credential: a container is isolation for nobody but the owner. */
export function isContainedFor(
  { root }: Pick<ClaimedTurn, "root">,
  { containment }: Pick<Toolbox, "containment">,
): boolean {
  return containment === "sandbox" || (containment === "container" && speakerOf(root.trust) === "owner");
}

/**
 * What a call may do with documents: the file tools read and write them, and in other people's conversations they are read only. A tool that
 * executes or that reads what others wrote works on the disk, and needs none.
 */
export function documentRights(
  { effects }: Pick<ToolDescriptor, "effects">,
  audience: "owner" | "others",
): DocumentRights {
  if (effects.includes("executes") || effects.includes("reads_untrusted")) return "none";
  if (effects.includes("writes_files") && audience === "owner") return "write";
  return effects.includes("reads_files") ? "read" : "none";
}

/** The turn was begun by an untrusted sender, or the model is shown untrusted content in it. */
export function isTainted({ root }: Pick<ClaimedTurn, "root">, { untrusted }: Pick<Heard, "untrusted">): boolean {
  return untrusted || isUntrusted(root.trust);
}

type Tools = Pick<Toolbox, "find">;

export function heardIn(messages: readonly Message[], toolbox: Tools): Heard {
  return {
    untrusted: messages.some((message) => isTaintedMessage(message, toolbox)),
    group: messages.some((message) => message.from?.direct === false),
  };
}

/** Whether a request is tainted that shows `messages` under this record: what a compaction left out counts by the record. */
export function showsTaint(
  record: Pick<ViewRecord, "tainted"> | null,
  messages: readonly Message[],
  toolbox: Tools,
): boolean {
  return record?.tainted === true || messages.some((message) => isTaintedMessage(message, toolbox));
}

/** Finds taint in what successive requests of a turn show; messages that it has read under the same record are not read again. */
export class TaintScan {
  #record: ViewRecord | null = null;
  #clean = 0;

  /** `pending`: of `messages`, how many at the end are not committed yet and may still change. The result is that of `showsTaint`. */
  shows(record: ViewRecord | null, messages: readonly Message[], pending: number, toolbox: Tools): boolean {
    // Under one record the messages of a turn's requests only grow at their end.
    if (record !== this.#record) this.#clean = 0;
    this.#record = record;
    if (showsTaint(record, messages.slice(this.#clean), toolbox)) return true;
    this.#clean = messages.length - pending;
    return false;
  }
}

/** Of two parts of a turn, together. */
export function heardBoth(one: Heard, other: Heard): Heard {
  return { untrusted: one.untrusted || other.untrusted, group: one.group || other.group };
}

/** By its mark; without one (older messages, results that are not committed yet) by its sender and its parts. */
function isTaintedMessage(message: Message, toolbox: Tools): boolean {
  if (message.tainted === true) return true;
  let evidence = evidences.get(message);
  if (evidence === undefined) {
    evidence = evidenceIn(message);
    evidences.set(message, evidence);
  }
  return evidence.untrusted || evidence.tools.some((name) => readsUntrusted(name, toolbox));
}

/** What a message contains that does not change with the catalog. */
interface TaintEvidence {
  untrusted: boolean;
  /** Tools whose results it contains. */
  tools: readonly string[];
}

/** A message never changes, and every request reads all messages of the view. */
const evidences = new WeakMap<Message, TaintEvidence>();

function evidenceIn({ from, role, parts }: Message): TaintEvidence {
  const results = parts.filter((part) => part.type === "tool_result").filter(({ refused }) => refused !== true);
  const untrusted =
    (from !== undefined && isUntrustedInput(from, parts)) ||
    // Memory and the file tools warn of the lines of a document that are untrusted.
    results.some((result) => result.untrusted === true || isUnderWarning(result.content)) ||
    parts.some((part) => {
      // What memory recalls by itself is a note of the loop.
      if (part.type === "text") return from === undefined && role === "user" && isUnderWarning(part.text);
      return part.type === "blob" && from === undefined;
    });
  return { untrusted, tools: [...new Set(results.map(({ name }) => name))] };
}

/** Whether the results of this tool are untrusted content. */
export function readsUntrusted(name: string, toolbox: Tools): boolean {
  const tool = toolbox.find(name);
  if (tool === undefined) return false;
  let tainting = taintingTools.get(tool.descriptor);
  if (tainting === undefined) {
    tainting = taints(permissionTool(tool, false));
    taintingTools.set(tool.descriptor, tainting);
  }
  return tainting;
}

/** The effects of a descriptor never change, and they are looked up for each result of the view. */
const taintingTools = new WeakMap<ToolDescriptor, boolean>();

export function permissionTool({ descriptor }: TurnTool, contained: boolean): PermissionTool {
  const { name, readOnly, aliases, risk, effects } = descriptor;
  return { name, readOnly, aliases, risk, effects, contained };
}
