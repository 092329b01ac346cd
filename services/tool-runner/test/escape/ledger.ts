// Counts the attempts of the escape suite: each is a test of its own; one whose checks fail has escaped.
import { test, type TestContext } from "node:test";
import { bwrap } from "../support/commands.ts";

/** What stands against an attempt. */
export type Against = "the tools" | "bubblewrap" | "plain isolation";

/** An attempt that this machine cannot hold or does not claim to: it is named, not left out. */
export interface NotMade {
  title: string;
  why: string;
}

const ran: string[] = [];
const escaped: string[] = [];
const notMade: NotMade[] = [];

const noBubblewrap = "bubblewrap does not work here, and plain isolation does not claim to hold this";

/**
 * The name says what was tried; the test looks from outside at what became of it. `unheld`: why nothing here claims to hold it, besides
 * bubblewrap that does not work; undefined where it is held.
 */
export function attempt(name: string, against: Against, run: (t: TestContext) => Promise<void>, unheld?: string): void {
  const title = `${name} (against ${against})`;
  const why = against === "bubblewrap" && bwrap === undefined ? noBubblewrap : unheld;
  if (why !== undefined) {
    notMade.push({ title, why });
    test(title, { skip: why }, () => undefined);
    return;
  }
  test(title, async (t) => {
    ran.push(title);
    try {
      await run(t);
    } catch (error) {
      escaped.push(title);
      throw error;
    }
  });
}

export function tally(): { ran: number; escaped: readonly string[]; notMade: readonly NotMade[] } {
  return { ran: ran.length, escaped, notMade };
}
