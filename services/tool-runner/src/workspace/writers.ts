// Tells which commands write, from look to look, so that one that fills the workspace is stopped and one that only waits beside it is not.
// What nobody is seen to write (space set aside without writing, empty files, writers of other replicas, disks in memory) counts against
// all of them. It does not know processes, files or limits.

/** Bytes sent to disks so far. */
export interface Writes {
  /** By this service and by all it has started that has ended. */
  own: number;
  /** By commands that run, by the number of their first process. */
  commands: ReadonlyMap<number, number>;
}

export interface Look {
  /** What was taken; looking may have needed a while. */
  bytes: number;
  /** Before it began, and when it was over; undefined where it cannot be known. */
  from: Writes | undefined;
  to: Writes | undefined;
}

/**
 * Keeps what is lost of the sums: what a killed process has written is told of its parent only where that has lived to hear of its end. Every
 * reading goes through it.
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

/** So much may come without being seen written: names and folders take some room. */
const toleratedBytes = 1024 * 1024;
/** File systems set aside more than is written. */
const setAsideFactor = 2;

export class Writers {
  #before: Look | undefined;
  #unseenBytes = 0;

  /** Nothing is over its limit. No look: the next one has nothing to be compared with. */
  calm(look: Look | undefined): void {
    this.#before = look;
    this.#unseenBytes = 0;
  }

  /** A limit is passed: the commands that have written since the last look. Undefined where that cannot be known: it may be any. */
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
