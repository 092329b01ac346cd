// Network egress of this replica's commands: a folder for proxy sockets, one proxy per command, and its bind mounts.
import { randomUUID } from "node:crypto";
import { mkdir, readdir, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { Resolver } from "../../network/target.ts";
import { errnoOf } from "../../workspace/errors.ts";
import type { EgressSettings } from "./hosts.ts";
import { egressBinds } from "./sandbox-setup.ts";
import { openEgressProxy, type EgressEvent } from "./proxy.ts";

export interface EgressOptions {
  settings: EgressSettings;
  resolve: Resolver;
  /** Called once per connection or refusal of a command; `callName` identifies the command. */
  onEvent: (event: EgressEvent, callName: string) => void;
}

/** Network egress of one command. */
interface CommandEgress {
  /** Arguments for bubblewrap. */
  readonly binds: readonly string[];
  /** Refused destinations, with the reason. */
  readonly refused: ReadonlySet<string>;
  readonly close: () => Promise<void>;
}

export type Egress = (callName: string) => Promise<CommandEgress>;

/** `folder` belongs to this user; no other user can write to it. */
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

/** Removes sockets of killed services: no process listens on them. */
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
