// Reads the parts of messages for display. Pure.
import type { Attachment, Part } from "@parley/contracts";
import type { Block } from "./state.ts";

/** The text parts, joined by blank lines. */
export function textOfParts(parts: readonly (Part | Block)[]): string {
  return parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : [])).join("\n\n");
}

export function blocksOf(parts: readonly Part[]): Block[] {
  return parts.flatMap((part): Block[] => {
    switch (part.type) {
      case "text":
        return part.text === "" ? [] : [{ type: "text", text: part.text }];
      case "reasoning":
        return part.text === "" ? [] : [{ type: "reasoning", text: part.text }];
      case "tool_call":
        return [{ type: "tool", callId: part.id }];
      case "tool_result":
      case "binary":
      case "blob":
      case "quote":
      case "provider":
      case "finish":
        return [];
    }
  });
}

export function filesOf(parts: readonly Part[]): Attachment[] {
  return parts.flatMap((part) => {
    if (part.type !== "blob") return [];
    const { sha256, mediaType, name, bytes } = part;
    return [{ sha256, mediaType, name, bytes }];
  });
}
