// The deadline of a call, paused while a person is asked.
import assert from "node:assert/strict";
import { beforeEach, describe, mock, test } from "node:test";
import { Deadline } from "../src/calls/deadline.ts";

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

describe("a deadline", () => {
  test("fires once its time has passed", () => {
    const over = mock.fn();
    const deadline = new Deadline(1_000, over);
    mock.timers.tick(999);
    assert.equal(over.mock.callCount(), 0);
    mock.timers.tick(1);
    assert.equal(over.mock.callCount(), 1);
    deadline.close();
  });

  test("stays paused until the last pause ends", () => {
    const over = mock.fn();
    const deadline = new Deadline(1_000, over);
    const [first, second] = [deadline.pause(), deadline.pause()];
    first();
    first();
    mock.timers.tick(10_000);
    assert.equal(over.mock.callCount(), 0, "the second pause still holds");
    second();
    mock.timers.tick(1_000);
    assert.equal(over.mock.callCount(), 1);
  });

  test("never fires after it is closed, even when a pause ends", () => {
    const over = mock.fn();
    const deadline = new Deadline(1_000, over);
    const goOn = deadline.pause();
    deadline.close();
    goOn();
    mock.timers.tick(10_000);
    assert.equal(over.mock.callCount(), 0);
  });
});
