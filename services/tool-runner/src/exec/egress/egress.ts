// The way out of this replica's commands: a folder for the proxies' sockets, one proxy a command, and what is bound into the wall for it.
import { randomUUID } from "node:crypto";
import { mkdir, readdir, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { Resolver } from "../../web/target.ts";
import { errnoOf } from "../../workspace/errors.ts";
import type { EgressSettings } from "./hosts.ts";
import { egressBinds } from "./inside.ts";
import { openEgressProxy, type EgressEvent } from "./proxy.ts";

export interface EgressOptions {
  settings: EgressSettings;
  resolve: Resolver;
  /** Told once a connection or refusal of a command; `callName` is the command's. */
  onEvent: (event: EgressEvent, callName: string) => void;
}

/** The way out of one command. */
interface WayOut {
  /** For bubblewrap's command line. */
  readonly binds: readonly string[];
  /** What was asked for and refused, with the reason. */
  readonly refused: ReadonlySet<string>;
  readonly close: () => Promise<void>;
}

export type Egress = (callName: string) => Promise<WayOut>;

/** `folder`: this user's own, where nobody else writes. */
export async function openEgress({ settings, resolve, onEvent }: EgressOptions, folder: string): Promise<Egress> {
  const sockets = join(folder, "egress");
  await mkdir(sockets, { recursive: true, mode: 0o700 });
  await removeLeftBehind(sockets);
  return async (callName) => {
    const path = join(sockets, `${randomUUID()}.sock`);
    const proxy = await openEgressProxy({ settings, resolve, path, onEvent: (event) => onEvent(event, callName) });
    return { binds: egressBinds(process.execPath, path), refused: proxy.refused, close: proxy.close };
  };
}

/** Sockets of services that were killed: nobody listens at them. */
async function removeLeftBehind(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (await isDeserted(path)) await unlink(path).catch(() => undefined);
  }
}

function isDeserted(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path }, () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error) => resolve(errnoOf(error) === "ECONNREFUSED"));
  });
}
