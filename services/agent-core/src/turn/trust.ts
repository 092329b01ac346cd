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

/** Of two parts of a turn, together. */
export function heardBoth(one: Heard, other: Heard): Heard {
  return { untrusted: one.untrusted || other.untrusted, group: one.group || other.group };
}

/** By its mark; without one (older messages, results that are not committed yet) by its sender and its parts. */
function isTaintedMessage(message: Message, toolbox: Tools): boolean {
  const { from, role, parts } = message;
  if (message.tainted === true) return true;
  if (from !== undefined && isUntrustedInput(from, parts)) return true;
  return parts.some((part) => {
    // What memory recalls by itself is a note of the loop.
    if (part.type === "text") return from === undefined && role === "user" && isUnderWarning(part.text);
    if (part.type === "blob") return from === undefined;
    if (part.type !== "tool_result" || part.refused === true) return false;
    // Memory and the file tools warn of the lines of a document that are untrusted.
    if (part.untrusted === true || isUnderWarning(part.content)) return true;
    return readsUntrusted(part.name, toolbox);
  });
}

/** Whether the results of this tool are untrusted content. */
export function readsUntrusted(name: string, toolbox: Tools): boolean {
  const tool = toolbox.find(name);
  return tool !== undefined && taints(permissionTool(tool, false));
}

export function permissionTool({ descriptor }: TurnTool, contained: boolean): PermissionTool {
  const { name, readOnly, aliases, risk, effects } = descriptor;
  return { name, readOnly, aliases, risk, effects, contained };
}
