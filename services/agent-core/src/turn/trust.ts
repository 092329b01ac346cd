// Whose turn it is and what it has read; pure. Permissions, documents and memory go by it.
import {
  isUnderWarning,
  type ClaimedTurn,
  type DocumentRights,
  type Message,
  type ToolDescriptor,
} from "@parley/contracts";
import { isUntrusted, speakerOf, taints } from "../permissions/speaker.ts";
import type { PermissionTool } from "../permissions/tool-facts.ts";
import type { Toolbox, TurnTool } from "./toolbox.ts";

/** What a turn has heard from its beginning on, also where its messages are not shown any more. */
export interface Heard {
  /** Words that nobody here vouches for. */
  untrusted: boolean;
  /** Somebody in a group. */
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

/** The turn was begun by, or has read, what nobody here vouches for. */
export function isTainted({ root }: Pick<ClaimedTurn, "root">, { untrusted }: Pick<Heard, "untrusted">): boolean {
  return untrusted || isUntrusted(root.trust);
}

/** `messages`: of one turn. */
export function heardIn(messages: readonly Message[], toolbox: Pick<Toolbox, "find">): Heard {
  return {
    untrusted: holdsUntrusted(messages, toolbox),
    group: messages.some((message) => message.from?.direct === false),
  };
}

/** Of two parts of a turn, together. */
export function heardBoth(one: Heard, other: Heard): Heard {
  return { untrusted: one.untrusted || other.untrusted, group: one.group || other.group };
}

function holdsUntrusted(messages: readonly Message[], toolbox: Pick<Toolbox, "find">): boolean {
  if (messages.some((message) => message.from?.tainted === true)) return true;
  return messages.some((message) =>
    message.parts.some((part) => {
      // Whoever sent a file seldom wrote it; the owner vouches for what he sends.
      if (part.type === "blob") return message.from?.role !== "owner";
      // What memory recalls by itself is a note of the loop.
      if (part.type === "text")
        return message.from === undefined && message.role === "user" && isUnderWarning(part.text);
      if (part.type !== "tool_result" || part.refused === true) return false;
      // Memory and the file tools warn of the lines of a document that outsiders had a hand in.
      if (isUnderWarning(part.content)) return true;
      const tool = toolbox.find(part.name);
      return tool !== undefined && taints(permissionTool(tool, false));
    }),
  );
}

export function permissionTool({ descriptor }: TurnTool, contained: boolean): PermissionTool {
  const { name, readOnly, aliases, risk, effects } = descriptor;
  return { name, readOnly, aliases, risk, effects, contained };
}
