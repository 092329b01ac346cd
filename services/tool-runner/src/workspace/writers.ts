// Determines which commands write between two samples, so that a command that fills the workspace is stopped and an idle one is not.
// Growth that no command is seen to write (preallocated space, empty files, other replicas, in-memory disks) counts against all of
// them. It does not know processes, files or limits.

/** Bytes written to disk so far. */
export interface Writes {
  /** By this service and its ended descendants. */
  own: number;
  /** By running commands, keyed by the pid of their first process. */
  commands: ReadonlyMap<number, number>;
}

export interface Look {
  /** Space in use; measuring it may have taken a while. */
  bytes: number;
  /** Written bytes before and after the measurement; undefined when unknown. */
  from: Writes | undefined;
  to: Writes | undefined;
}

/**
 * Compensates for lost counts: the bytes of a killed process reach its parent's count only if the parent is still alive to collect it.
 * Every sample passes through it.
 */
export class Books {
  #last: Writes | undefined;
  #lost = 0;

  enter(now: Writes | undefined): Writes | undefined {
    if (now === undefined) return undefined;
    const { own, commands } = this.#last ?? now;
    const dropped = commands
      .entries()
      .reduce((sum, [command, bytes]) => sum + Math.max(0, bytes - (now.commands.get(command) ?? 0)), 0);
    this.#lost += Math.max(0, dropped - (now.own - own));
    this.#last = now;
    return { ...now, own: now.own + this.#lost };
  }
}

/** Growth tolerated without observed writes: names and folders take some space. */
const toleratedBytes = 1024 * 1024;
/** File systems allocate more than is written. */
const setAsideFactor = 2;

export class Writers {
  #before: Look | undefined;
  #unseenBytes = 0;

  /** Records a sample within the limits. Undefined: the next sample has no predecessor to compare with. */
  calm(look: Look | undefined): void {
    this.#before = look;
    this.#unseenBytes = 0;
  }

  /** Over a limit: returns the commands that have written since the last sample; undefined when unknown, so any may be the cause. */
  since(look: Look): ReadonlySet<number> | undefined {
    const { from } = this.#before ?? {};
    const gained = look.bytes - (this.#before?.bytes ?? 0);
    this.#before = look;
    const { to } = look;
    if (from === undefined || to === undefined) return undefined;
    const seen = Math.max(0, total(to) - total(from));
    this.#unseenBytes += Math.max(0, gained - seen * setAsideFactor);
    if (this.#unseenBytes > toleratedBytes) {
      this.#unseenBytes = 0;
      return undefined;
    }
    const grown = [...to.commands].filter(([command, bytes]) => bytes > (from.commands.get(command) ?? 0));
    return new Set(grown.map(([command]) => command));
  }
}

function total({ own, commands }: Writes): number {
  return commands.values().reduce((sum, bytes) => sum + bytes, own);
}
