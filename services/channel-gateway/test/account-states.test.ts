// Which states of accounts are logged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AccountStates, type AccountState } from "../src/delivery/account-states.ts";

test("logs a reason once until the account works again, also when its lease was lost in between", () => {
  const lines: unknown[] = [];
  const add = (fields: unknown, text?: string) => void lines.push([fields, text]);
  const states = new AccountStates({ error: add, warn: add });
  const refused: AccountState = { state: "disabled", reason: "token refused" };
  const set = (...all: AccountState[]) => {
    for (const each of all) states.set("telegram:main", each);
    return lines.splice(0);
  };
  const line = [{ account: "telegram:main", reason: "token refused" }, "account disabled"];
  assert.deepEqual(set({ state: "standby" }, refused, { state: "standby" }, refused), [line]);
  assert.deepEqual(set({ state: "failing", reason: "no network" }), [
    [{ account: "telegram:main", reason: "no network" }, "account failing"],
  ]);
  assert.deepEqual(set({ state: "connected", as: "@parley" }, refused), [line]);
  states.forget("telegram:main");
  assert.deepEqual(set(refused), [line]);
});
