// Where leases are placed: equal shares, the same on every replica, with few moves when a replica joins or leaves.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { placeLeases } from "../src/delivery/placement.ts";

const namesOf = (count: number) => Array.from({ length: count }, (_, index) => `telegram:bot${index}`);
const membersOf = (owners: readonly string[], names: readonly string[]) => owners.map((owner) => ({ owner, names }));

function shares(placed: ReadonlyMap<string, string>, owners: readonly string[]): number[] {
  return owners.map((owner) => [...placed.values()].filter((each) => each === owner).length);
}

describe("the placement of leases", () => {
  test("gives every replica its share, plus or minus one, in any order of the members", () => {
    const owners = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(owners, fc.nat({ max: 60 }), (members, count) => {
        const names = namesOf(count);
        const placed = placeLeases(membersOf(members, names));
        assert.equal(placed.size, count);
        const counts = shares(placed, members);
        assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join(" "));
        assert.deepEqual(placeLeases(membersOf(members.toReversed(), names.toReversed())), placed);
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });

  test("moves few leases when a replica joins", () => {
    const names = namesOf(24);
    const before = placeLeases(membersOf(["a", "b", "c"], names));
    const after = placeLeases(membersOf(["a", "b", "c", "d"], names));
    const moved = names.filter((name) => before.get(name) !== after.get(name));
    // Six have to move.
    assert.ok(moved.length <= 12, `${moved.length} leases moved`);
  });

  test("places a lease only on a replica that can hold it", () => {
    const some = [
      { owner: "old", names: ["telegram:one"] },
      { owner: "new", names: ["telegram:one", "slack:two", "slack:three", "slack:four"] },
    ];
    const placed = placeLeases(some);
    for (const name of ["slack:two", "slack:three", "slack:four"]) assert.equal(placed.get(name), "new");
    assert.equal(placed.get("telegram:one"), "old");
    assert.equal(placeLeases([]).size, 0);
  });
});
