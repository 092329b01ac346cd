// Derives the operation id of a local call's own write. It is the same for every run of a step, so that a repeated run after a
// crash has no second effect.
import { createHash } from "node:crypto";
import type { ToolStep } from "@parley/contracts";

/** A UUID of version 8 (RFC 9562: custom format). */
export function operationId({ turnId, n: stepIndex }: Pick<ToolStep, "turnId" | "n">): string {
  const hex = createHash("sha256").update(`local ${turnId} ${stepIndex}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
