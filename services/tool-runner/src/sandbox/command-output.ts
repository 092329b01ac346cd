// Collects one command's output as it arrives: the window of `output.ts`, and the overflow file of `spill.ts`.
import type { Workspace } from "../workspace/workspace.ts";
import type { ExecLimits } from "./limits.ts";
import { OutputWindow } from "./output.ts";
import { openSpill, type Spill } from "./spill.ts";

export interface KeptOutput {
  head: string;
  tail: string;
  totalBytes: number;
  missingBytes: number;
  spill: { path: string; bytes: number } | undefined;
}

/** The window shown in the result, and the file that receives everything once the window overflows. */
export class CommandOutput {
  readonly #window: OutputWindow;
  readonly #workspace: Workspace;
  readonly #callName: string;
  readonly #limits: ExecLimits;
  #spill: Spill | undefined;
  /** Resolves when the file is open or could not be opened; undefined while the window has not overflowed. */
  #begun: Promise<void> | undefined;
  /** Output that arrived while the file was being opened: reading resumes without waiting when the command ends. */
  #early: Buffer[] | undefined;
  #stopped = false;

  constructor(workspace: Workspace, callName: string, limits: ExecLimits) {
    this.#window = new OutputWindow(limits.shownBytes);
    this.#workspace = workspace;
    this.#callName = callName;
    this.#limits = limits;
  }

  push(chunk: Buffer): Promise<void> | undefined {
    if (this.#stopped) return undefined;
    if (this.#early !== undefined) {
      this.#early.push(chunk);
      return this.#begun;
    }
    const overflows = this.#window.totalBytes + chunk.length > this.#limits.shownBytes;
    if (overflows && this.#begun === undefined) {
      this.#early = [chunk];
      this.#begun = this.#beginSpill();
      return this.#begun;
    }
    this.#keep(chunk);
    return undefined;
  }

  async report(): Promise<KeptOutput> {
    await this.#begun;
    return {
      ...this.#window.ends(),
      totalBytes: this.#window.totalBytes,
      spill: this.#spill === undefined ? undefined : { path: this.#spill.path, bytes: this.#spill.writtenBytes },
    };
  }

  /** Ignores all further output. */
  stop(): void {
    this.#stopped = true;
    this.close();
  }

  close(): void {
    this.#spill?.close();
  }

  #keep(chunk: Buffer): void {
    this.#window.push(chunk);
    this.#spill?.write(chunk);
  }

  async #beginSpill(): Promise<void> {
    const before = this.#window.whole();
    // Without a file, the result still shows both ends.
    this.#spill = await openSpill(this.#workspace, this.#callName, this.#limits.maxSpillBytes).catch(() => undefined);
    this.#spill?.write(before);
    for (const chunk of this.#early ?? []) this.#keep(chunk);
    this.#early = undefined;
    if (this.#stopped) this.#spill?.close();
  }
}
