// Leases of connections that must have exactly one owner. Each grant raises the fence; leases expire by PostgreSQL's clock.
import { leaseReleased, WireError } from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import type { Handlers } from "../handler.ts";

/** A replica that sent no request for this long no longer takes part in the placement; less than a lease lives. */
const memberMs = 2_500;

/** SQL conditions: the account of a lease is not paused; a lease is free for the owner. */
const isActive = (name: string) =>
  `NOT EXISTS (SELECT FROM parley.account_pauses WHERE channel || ':' || account = split_part(${name}, '#', 1))`;
const isFree = (lease: string, owner: string) =>
  `(${lease}.owner IS NULL OR ${lease}.owner = ${owner} OR ${lease}.expires_at < now())`;

export const leaseHandlers = {
  async leaseSync({ database }, { owner, ttlMs, names, held, acquire }) {
    return withClient(database, async (client) => {
      await recordMember(client, owner, names);
      const renewed = held.length === 0 ? [] : await renew(client, held, ttlMs);
      const granted = acquire.length === 0 ? [] : await grant(client, owner, acquire, ttlMs);
      const missing = acquire.filter((name) => !granted.some((each) => each.name === name));
      const expiresInMs = missing.length === 0 ? null : await nextExpiry(client, owner, missing);
      return { renewed, granted, expiresInMs, members: await liveMembers(client) };
    });
  },

  async leaseAcquire({ database }, input) {
    const taken = await database.query<{ fence: number; cursor: string | null }>(
      `INSERT INTO parley.leases AS lease (name, owner, fence, expires_at)
       SELECT $1, $2, 1, now() + $3 * interval '1 millisecond'
       WHERE ${isActive("$1")}
       ON CONFLICT (name) DO UPDATE SET owner = $2, fence = lease.fence + 1, expires_at = now() + $3 * interval '1 millisecond'
       WHERE lease.owner IS NULL OR lease.owner = $2 OR lease.expires_at < now()
       RETURNING fence, cursor`,
      [input.name, input.owner, input.ttlMs],
    );
    const granted = taken.rows[0];
    if (granted !== undefined) return { granted: true, ...granted, holder: input.owner };
    const held = await database.query<{ fence: number; owner: string | null }>(
      "SELECT fence, owner FROM parley.leases WHERE name = $1",
      [input.name],
    );
    // A paused account may never have had a lease.
    const row = held.rows[0];
    return { granted: false, fence: row?.fence ?? 0, cursor: null, holder: row?.owner ?? null };
  },

  async leaseRenew({ database }, input) {
    const { rowCount } = await database.query(
      "UPDATE parley.leases SET expires_at = now() + $3 * interval '1 millisecond' WHERE name = $1 AND fence = $2 AND owner IS NOT NULL",
      [input.name, input.fence, input.ttlMs],
    );
    if (rowCount !== 1) throw new WireError("FENCED", `lease ${input.name}: fence ${input.fence} is no longer valid`);
    return {};
  },

  async leaseCheckpoint({ database }, input) {
    const { rowCount } = await database.query("UPDATE parley.leases SET cursor = $3 WHERE name = $1 AND fence = $2", [
      input.name,
      input.fence,
      input.cursor,
    ]);
    if (rowCount !== 1) throw new WireError("FENCED", `lease ${input.name}: fence ${input.fence} is no longer valid`);
    return {};
  },

  async leaseRelease({ database, bus }, input) {
    await withClient(database, (client) =>
      client.query("UPDATE parley.leases SET owner = NULL, expires_at = now() WHERE name = $1 AND fence = $2", [
        input.name,
        input.fence,
      ]),
    );
    bus.publish(leaseReleased, { name: input.name });
    return {};
  },
} satisfies Partial<Handlers>;

/** Without names the replica leaves. */
async function recordMember(client: PoolClient, owner: string, names: readonly string[]): Promise<void> {
  if (names.length === 0) {
    await client.query("DELETE FROM parley.lease_members WHERE owner = $1 OR expires_at < now()", [owner]);
    return;
  }
  await client.query({
    name: "lease-member",
    text: `INSERT INTO parley.lease_members (owner, names, expires_at) VALUES ($1, $2, now() + $3 * interval '1 millisecond')
           ON CONFLICT (owner) DO UPDATE SET names = excluded.names, expires_at = excluded.expires_at`,
    values: [owner, JSON.stringify(names), memberMs],
  });
}

interface Member {
  owner: string;
  names: string[];
}

async function liveMembers(client: PoolClient): Promise<Member[]> {
  const { rows } = await client.query<{ owner: string; names: string; moves: string }>({
    name: "lease-members",
    text: `SELECT owner, names,
             (SELECT coalesce(json_object_agg(channel || ':' || account, replica), '{}') FROM parley.account_moves)::text AS moves
           FROM parley.lease_members WHERE expires_at > now() ORDER BY owner`,
  });
  const members = rows.map(({ owner, names }) => ({ owner, names: JSON.parse(names) as string[] }));
  return withMoves(members, JSON.parse(rows[0]?.moves ?? "{}") as Record<string, string>);
}

/**
 * Leaves the leases of moved accounts only to their gateway, unless it is away. `moves`: the replica's name by account. An owner is
 * `replica/incarnation`. Pure.
 */
function withMoves(members: readonly Member[], moves: Readonly<Record<string, string>>): Member[] {
  const targetOf = (name: string): string | undefined => moves[name.split("#", 1)[0] ?? ""];
  const isTarget = (owner: string, name: string) => owner.split("/", 1)[0] === targetOf(name);
  const hasTarget = (name: string) => members.some(({ owner, names }) => isTarget(owner, name) && names.includes(name));
  return members.map(({ owner, names }) => ({
    owner,
    names: names.filter((name) => targetOf(name) === undefined || isTarget(owner, name) || !hasTarget(name)),
  }));
}

/** Returns the names that were renewed. */
async function renew(
  client: PoolClient,
  held: readonly { name: string; fence: number }[],
  ttlMs: number,
): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>({
    name: "lease-renew-all",
    // Rows are locked in the order of their names, as in `grant`, so that two replicas never wait for each other.
    text: `WITH mine AS (
             SELECT l.name FROM parley.leases l JOIN unnest($1::text[], $2::bigint[]) AS h(name, fence) ON h.name = l.name AND h.fence = l.fence
             WHERE l.owner IS NOT NULL ORDER BY l.name FOR UPDATE OF l
           )
           UPDATE parley.leases SET expires_at = now() + $3 * interval '1 millisecond' FROM mine WHERE leases.name = mine.name
           RETURNING leases.name`,
    values: [held.map(({ name }) => name), held.map(({ fence }) => fence), ttlMs],
  });
  return rows.map(({ name }) => name);
}

async function grant(client: PoolClient, owner: string, names: readonly string[], ttlMs: number) {
  const { rows } = await client.query<{ name: string; fence: number; cursor: string | null }>({
    name: "lease-grant",
    text: `INSERT INTO parley.leases AS lease (name, owner, fence, expires_at)
           SELECT w.name, $2, 1, now() + $3 * interval '1 millisecond'
           FROM unnest($1::text[]) AS w(name) LEFT JOIN parley.leases l ON l.name = w.name
           WHERE (l.name IS NULL OR ${isFree("l", "$2")}) AND ${isActive("w.name")} ORDER BY w.name
           ON CONFLICT (name) DO UPDATE SET owner = $2, fence = lease.fence + 1, expires_at = now() + $3 * interval '1 millisecond'
           WHERE ${isFree("lease", "$2")}
           RETURNING name, fence, cursor`,
    values: [names, owner, ttlMs],
  });
  return rows;
}

async function nextExpiry(client: PoolClient, owner: string, names: readonly string[]): Promise<number | null> {
  const { rows } = await client.query<{ expiresInMs: number | null }>({
    name: "lease-expiry",
    text: `SELECT ceil(extract(epoch FROM min(expires_at) - now()) * 1000)::int AS "expiresInMs" FROM parley.leases
           WHERE name = ANY($1) AND owner <> $2 AND expires_at > now() AND ${isActive("leases.name")}`,
    values: [names, owner],
  });
  return rows[0]?.expiresInMs ?? null;
}
