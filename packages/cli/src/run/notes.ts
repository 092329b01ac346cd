// What a run writes to standard error for the person who started it.

import { ownToolName, type SessionEvent } from "@parley/contracts";

import { asTyped } from "../io/command-name.ts";
import { type Io, note } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";
import type { OutputFormat } from "./options.ts";

/** Notes a denied call and, next to an answer as text, how to answer an approval question. */
export function noteEvent(io: Io, output: OutputFormat, event: SessionEvent): void {
  if (output === "text" && event.type === "approval.requested") {
    note(io, `${event.tool} needs approval: ${stripControl(event.summary)}`);
    note(
      io,
      `answer with: ${asTyped("parley approvals")} --approve ${event.approvalId}   or --deny ${event.approvalId}`,
    );
  }
  if (event.type === "tool.denied") note(io, `denied: ${ownToolName(event.tool)}: ${stripControl(event.reason)}`);
}
