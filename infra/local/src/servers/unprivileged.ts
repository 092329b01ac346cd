// PostgreSQL refuses to run as root. This finds a way to run a command as somebody else, without making a user in the system.

import { chownSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { LocalError } from "../errors.ts";
import { run } from "./run.ts";

export interface Unprivileged {
  /** The command line that runs `command` without root's rights; a `--` separates the wrapper from it. */
  wrap(command: string, args: readonly string[]): [string, readonly string[]];
  /** Hands a folder over to the identity the command runs as, where that is needed. */
  own(folder: string): void;
}

interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The identity to run `command`s as: ourselves, unless we are root. `folder` is where they will keep their data. */
export async function unprivileged(folder: string): Promise<Unprivileged> {
  if (process.getuid?.() !== 0) return { wrap: (command, args) => [command, args], own: () => {} };
  const accounts = systemAccounts();

  // In a user namespace root's own files belong to the mapped account, so it works in folders only root may enter. The account
  // has to be one the system knows, because initdb looks its name up; it gets no rights outside.
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
    "PostgreSQL refuses to run as root, and neither `unshare --user` nor `setpriv` works here.",
    {
      fix: "Start as an ordinary user, or set DATABASE_URL to a PostgreSQL that runs elsewhere.",
    },
  );
}

function requireEntry(folder: string, account: Account): void {
  for (let parent = dirname(folder); parent !== dirname(parent); parent = dirname(parent)) {
    if ((statSync(parent).mode & 0o001) !== 0) continue;
    throw new LocalError(
      "server_failed",
      `PostgreSQL runs as the user ${account.name} here, which may not enter ${parent}.`,
      {
        fix: "Set PARLEY_HOME to a folder other users may enter, such as one under /var/lib, or start as an ordinary user.",
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
