// PostgreSQL refuses to run as root. This file finds another identity for its commands without creating a system user.

import { chownSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { LocalError } from "../errors.ts";
import { run } from "./process.ts";

export interface Unprivileged {
  /** The command line that runs `command` without root's rights; `--` separates the wrapper from the command. */
  wrap(command: string, args: readonly string[]): [string, readonly string[]];
  /** Changes a folder's owner to the command's identity, if needed. */
  own(folder: string): void;
}

interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The identity for commands: this process's user, unless it is root. `folder`: their data folder. */
export async function unprivileged(folder: string): Promise<Unprivileged> {
  if (process.getuid?.() !== 0) return { wrap: (command, args) => [command, args], own: () => {} };
  const accounts = systemAccounts();

  // In a user namespace, root's files belong to the mapped account, so this works in folders that only root may enter. The account must
  // exist in the system, because initdb looks up its name; it gets no rights outside of the namespace.
  const mapped =
    accounts.find((account) => account.uid === 1000) ?? accounts.find((account) => account.name === "nobody");
  if (mapped !== undefined) {
    const userNamespace = ["--user", `--map-user=${mapped.uid}`, `--map-group=${mapped.gid}`, "--"];
    if ((await run("unshare", [...userNamespace, "true"])).code === 0) {
      return { wrap: (command, args) => ["unshare", [...userNamespace, command, ...args]], own: () => {} };
    }
  }

  const account = accounts.find(({ name }) => name === "postgres") ?? accounts.find(({ name }) => name === "nobody");
  const otherUser =
    account === undefined ? [] : [`--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups", "--"];
  if (account !== undefined && (await run("setpriv", [...otherUser, "true"])).code === 0) {
    return {
      wrap: (command, args) => ["setpriv", [...otherUser, command, ...args]],
      own: (owned) => {
        requireEntry(folder, account);
        chownSync(owned, account.uid, account.gid);
      },
    };
  }
  throw new LocalError(
    "server_failed",
    "PostgreSQL refuses to run as root, and neither `unshare --user` nor `setpriv` works on this machine.",
    {
      fix: "Start as an ordinary user, or set DATABASE_URL to an external PostgreSQL.",
    },
  );
}

function requireEntry(folder: string, account: Account): void {
  for (let parent = dirname(folder); parent !== dirname(parent); parent = dirname(parent)) {
    if ((statSync(parent).mode & 0o001) !== 0) continue;
    throw new LocalError(
      "server_failed",
      `PostgreSQL runs as the user ${account.name}, which may not enter ${parent}.`,
      {
        fix: "Set PARLEY_HOME to a folder that other users may enter, for example under /var/lib, or start as an ordinary user.",
      },
    );
  }
}

function systemAccounts(): Account[] {
  return readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .map(([name = "", , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
    .filter(({ name, uid, gid }) => name !== "" && uid > 0 && gid > 0);
}
