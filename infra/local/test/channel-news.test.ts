import assert from "node:assert/strict";
import { test } from "node:test";
import { channelNews } from "../src/main/channel-news.ts";

const account = (state: string, reason: string | null = null) => ({
  channel: "irc",
  account: "libera",
  state,
  reason,
});

/** The news of a sequence of looks at one account. */
function newsOf(...looks: ReturnType<typeof account>[]): string[][] {
  let failures: ReadonlyMap<string, number> = new Map();
  return looks.map((each) => {
    const { failures: next, news } = channelNews(failures, [each]);
    failures = next;
    return news;
  });
}

const failing = account("failing", "connect ECONNREFUSED");

test("tells once that an account does not work, with the reason, and once that it works again", () => {
  assert.deepEqual(
    newsOf(account("connected"), failing, failing, failing, account("connected"), account("connected")),
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

test("tells nothing of a failure that one look found, of a pause and of a takeover by another gateway", () => {
  assert.deepEqual(newsOf(failing, account("connected"), failing, account("paused")).flat(), []);
  assert.equal(newsOf(failing, failing, account("standby"), failing, account("connected")).flat().length, 2);
});
