// Counts the attempts of the escape suite: each is a separate test; an attempt whose checks fail has escaped.
import { test, type TestContext } from "node:test";
import { bwrap } from "../support/commands.ts";

/** The protection under test. */
export type Against = "the tools" | "bubblewrap" | "plain isolation";

/** An attempt that was not made because nothing on this machine claims to block it; it is listed with the reason. */
export interface NotMade {
  title: string;
  why: string;
}

const ran: string[] = [];
const escaped: string[] = [];
const notMade: NotMade[] = [];

const noBubblewrap = "bubblewrap does not work here, and plain isolation does not claim to block this";

/**
 * `name` is what is attempted; the test checks the result from outside. `unheld`: why nothing here claims to block it, apart from a
 * missing bubblewrap; undefined when it is blocked.
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
