// Formats documents for people. Pure.

import type { DocumentMeta } from "@parley/contracts";

import type { Paint } from "../io.ts";
import { localTime } from "../sessions/text.ts";
import { oneLine, table } from "../text.ts";

export function documentsTable(documents: readonly DocumentMeta[], paint: Paint): string {
  if (documents.length === 0) return "There are no documents yet. Create one: parley docs edit MEMORY.md";
  const head = ["PATH", "VERSION", "BYTES", "AUTHOR", "CHANGED"].map((cell) => paint("dim", cell));
  return table([head, ...documents.map((document) => [oneLine(document.path, 80), ...cells(document)])]);
}

export function historyTable(versions: readonly DocumentMeta[], paint: Paint): string {
  const head = ["VERSION", "BYTES", "AUTHOR", "CHANGED", "TURN"].map((cell) => paint("dim", cell));
  return table([head, ...versions.map((version) => [...cells(version), version.turnId ?? ""])]);
}

function cells({ version, bytes, deleted, author, createdAt, restoredFrom }: DocumentMeta): string[] {
  const by = restoredFrom === null ? author : `${author} (restored ${restoredFrom})`;
  return [String(version), deleted ? "removed" : String(bytes), by, localTime(createdAt)];
}
