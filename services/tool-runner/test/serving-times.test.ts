// The time of a call that stands still while somebody is asked, and signs of progress that come too fast.
import assert from "node:assert/strict";
import { beforeEach, describe, mock, test } from "node:test";
import { Deadline } from "../src/serving/deadline.ts";
import { atMostEvery } from "../src/serving/pace.ts";

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

describe("a deadline", () => {
  test("is over once its time has gone by", () => {
    const over = mock.fn();
    const deadline = new Deadline(1_000, over);
    mock.timers.tick(999);
    assert.equal(over.mock.callCount(), 0);
    mock.timers.tick(1);
    assert.equal(over.mock.callCount(), 1);
    deadline.close();
  });

  test("stands still until the last of those who hold it lets go", () => {
    const over = mock.fn();
    const deadline = new Deadline(1_000, over);
    const [first, second] = [deadline.pause(), deadline.pause()];
    first();
    first();
    mock.timers.tick(10_000);
    assert.equal(over.mock.callCount(), 0, "the second one holds it");
    second();
    mock.timers.tick(1_000);
    assert.equal(over.mock.callCount(), 1);
  });

  test("that is closed is never over, whoever lets go of it", () => {
    const over = mock.fn();
    const deadline = new Deadline(1_000, over);
    const goOn = deadline.pause();
    deadline.close();
    goOn();
    mock.timers.tick(10_000);
    assert.equal(over.mock.callCount(), 0);
  });
});

describe("a pace", () => {
  test("lets the first through at once, and of what follows too soon the last", () => {
    const said: number[] = [];
    const pace = atMostEvery<number>(1_000, (value) => said.push(value));
    for (const value of [1, 2, 3]) pace.say(value);
    assert.deepEqual(said, [1]);
    mock.timers.tick(1_000);
    assert.deepEqual(said, [1, 3]);
    pace.say(4);
    pace.close();
    mock.timers.tick(10_000);
    assert.deepEqual(said, [1, 3], "what was held back when it ended is dropped");
  });
});
