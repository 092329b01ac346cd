// Which replica should hold which lease. Pure, and the same on every replica: rendezvous hashing moves few leases when a replica joins or
// leaves, and equal shares (±1) bound it.
import { hash } from "node:crypto";

export interface LeaseMember {
  /** The replica's process instance. */
  owner: string;
  /** The leases that it can hold. */
  names: readonly string[];
}

/** Returns the owner of each name. */
export function placeLeases(members: readonly LeaseMember[]): Map<string, string> {
  const counts = new Map<string, number>();
  for (const name of members.flatMap((member) => member.names)) counts.set(name, (counts.get(name) ?? 0) + 1);
  // Those that few replicas can hold first: the others fill the shares up.
  const names = [...counts.keys()].sort(
    (one, other) => (counts.get(one) ?? 0) - (counts.get(other) ?? 0) || (one < other ? -1 : 1),
  );
  const share = Math.floor(names.length / Math.max(1, members.length));
  // So many replicas hold one lease more than the others.
  let larger = names.length - share * members.length;
  const held = new Map(members.map(({ owner }) => [owner, 0]));
  const placed = new Map<string, string>();
  for (const name of names) {
    const preferred = members
      .filter((member) => member.names.includes(name))
      .map(({ owner }) => ({ owner, weight: hash("sha1", `${name}\n${owner}`), count: held.get(owner) ?? 0 }))
      .sort((one, other) => (one.weight < other.weight ? 1 : -1));
    const isFree = ({ count }: { count: number }) => count < share || (count === share && larger > 0);
    // A replica that alone can hold a lease gets it beyond its share.
    const chosen = preferred.find(isFree) ?? preferred.toSorted((one, other) => one.count - other.count)[0];
    if (chosen === undefined) continue;
    if (chosen.count === share) larger -= 1;
    held.set(chosen.owner, chosen.count + 1);
    placed.set(name, chosen.owner);
  }
  return placed;
}
