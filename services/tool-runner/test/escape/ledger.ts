// Counts the attempts of the escape suite: each is a test of its own; one whose checks fail has escaped.
import { test, type TestContext } from "node:test";
import { bwrap } from "../support/commands.ts";

/** What stands against an attempt. Those behind bubblewrap cannot be made where it does not work; they are named, not left out. */
export type Against = "the tools" | "bubblewrap" | "plain isolation";

const ran: string[] = [];
const escaped: string[] = [];
const notMade: string[] = [];

/** The name says what was tried; the test looks from outside at what became of it. */
export function attempt(name: string, against: Against, run: (t: TestContext) => Promise<void>): void {
  const title = `${name} (against ${against})`;
  if (against === "bubblewrap" && bwrap === undefined) {
    notMade.push(title);
    test(
      title,
      { skip: "bubblewrap does not work here, and plain isolation does not claim to hold this" },
      () => undefined,
    );
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

export function tally(): { ran: number; escaped: readonly string[]; notMade: readonly string[] } {
  return { ran: ran.length, escaped, notMade };
}
