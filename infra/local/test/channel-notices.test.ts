import assert from "node:assert/strict";
import { test } from "node:test";
import { channelNotices } from "../src/main/channel-notices.ts";

const account = (state: string, reason: string | null = null) => ({
  channel: "irc",
  account: "libera",
  state,
  reason,
});

/** The notices of consecutive polls of one account. */
function noticesOf(...polls: ReturnType<typeof account>[]): string[][] {
  let failures: ReadonlyMap<string, number> = new Map();
  return polls.map((each) => {
    const { failures: next, notices } = channelNotices(failures, [each]);
    failures = next;
    return notices;
  });
}

const failing = account("failing", "connect ECONNREFUSED");

test("prints one notice when an account stops working and one when it works again", () => {
  assert.deepEqual(
    noticesOf(account("connected"), failing, failing, failing, account("connected"), account("connected")),
    [
      [],
      [],
      ["irc:libera does not work: connect ECONNREFUSED. See npx parley channels list"],
      [],
      ["irc:libera works again"],
      [],
    ],
  );
});

test("prints nothing when one poll found a failure, or an account is paused or taken over", () => {
  assert.deepEqual(noticesOf(failing, account("connected"), failing, account("paused")).flat(), []);
  assert.equal(noticesOf(failing, failing, account("standby"), failing, account("connected")).flat().length, 2);
});
