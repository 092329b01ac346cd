// What a run writes to standard error for the person who started it.

import type { SessionEvent } from "@parley/contracts";
import { type Denial, Denials } from "@parley/projections";

import { asTyped } from "../io/command-name.ts";
import { type Io, note } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";
import type { OutputFormat } from "./options.ts";

export class RunNotes {
  readonly #io: Io;
  readonly #output: OutputFormat;
  readonly #denials = new Denials();

  constructor(io: Io, output: OutputFormat) {
    this.#io = io;
    this.#output = output;
  }

  /** Notes a denied call and, next to an answer as text, how to answer an approval question. */
  event(event: SessionEvent): void {
    if (this.#output === "text" && event.type === "approval.requested") {
      note(this.#io, `${event.tool} needs approval: ${stripControl(event.summary)}`);
      const command = asTyped("parley approvals");
      note(this.#io, `answer with: ${command} --approve ${event.approvalId}   or --deny ${event.approvalId}`);
    }
    noteDenials(this.#io, this.#denials.event(event));
  }
}

export function noteDenials(io: Io, denials: readonly Denial[]): void {
  for (const { tool, reason } of denials) note(io, `denied: ${tool}: ${stripControl(reason)}`);
}
