// The operation id of a local call's own write: the same for every run of the same step, so that a run after a crash writes
// nothing twice.
import { createHash } from "node:crypto";
import type { ToolStep } from "@parley/contracts";

/** A UUID of version 8 (RFC 9562: of our own making). */
export function operationOf({ turnId, n }: Pick<ToolStep, "turnId" | "n">): string {
  const hex = createHash("sha256").update(`local ${turnId} ${n}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
