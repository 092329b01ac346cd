// A person whose client is matrix-nio, which nobody here wrote. It runs from the same unpacked suite as Synapse, reads orders from its
// standard input and reports what it receives, one JSON object a line.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Python } from "./python.ts";

/** A message as matrix-nio parsed it. */
interface NioMessage {
  sender: string;
  body: string;
  /** Null: plain text. */
  html: string | null;
  /** The class that matrix-nio chose, for example `RoomMessageText`. */
  kind: string;
  /** It replaces the text of an earlier message. */
  edit: boolean;
}

export interface NioPerson extends AsyncDisposable {
  readonly userId: string;
  /** Creates a conversation with one user, who is invited; returns the room's id. */
  openDirect(userId: string): Promise<string>;
  say(roomId: string, body: string): Promise<void>;
  /** Resolves with the messages received so far when there are at least `count`. */
  received(count: number): Promise<readonly NioMessage[]>;
}

const client = `
import asyncio, json, sys
from nio import AsyncClient, RoomMessage, RoomPreset

def report(**fields):
    print(json.dumps(fields), flush=True)

async def main(url, user, password):
    client = AsyncClient(url, user)
    await client.login(password)
    await client.sync(timeout=0)
    async def received(room, event):
        if event.sender != user:
            relates = event.source["content"].get("m.relates_to", {})
            report(sender=event.sender, body=event.body, html=getattr(event, "formatted_body", None),
                   kind=type(event).__name__, edit=relates.get("rel_type") == "m.replace")
    client.add_event_callback(received, RoomMessage)
    asyncio.ensure_future(client.sync_forever(timeout=10000))
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        if "invite" in order:
            created = await client.room_create(is_direct=True, preset=RoomPreset.private_chat, invite=[order["invite"]])
            report(room=created.room_id)
        else:
            await client.room_send(order["room"], "m.room.message", {"msgtype": "m.text", "body": order["say"]})
            report(said=True)

asyncio.run(main(*sys.argv[1:]))
`;

/** Logs in with the password and starts receiving. */
export function runNio(python: Python, url: string, userId: string, password: string): NioPerson {
  const [command, args] = python.command(["-c", client, url, userId, password]);
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const messages: NioMessage[] = [];
  const answers: ((answer: Record<string, unknown>) => void)[] = [];
  const watchers = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const report = JSON.parse(line) as Record<string, unknown>;
    if (!("sender" in report)) return answers.shift()?.(report);
    messages.push(report as unknown as NioMessage);
    for (const watcher of watchers) watcher();
  });
  const order = (fields: object): Promise<Record<string, unknown>> => {
    const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>();
    answers.push(resolve);
    child.stdin.write(`${JSON.stringify(fields)}\n`);
    return promise;
  };
  return {
    userId,
    openDirect: async (invite) => String((await order({ invite }))["room"]),
    say: async (room, say) => void (await order({ room, say })),
    received: async (count) => {
      while (messages.length < count) {
        const { promise, resolve } = Promise.withResolvers<void>();
        watchers.add(resolve);
        await promise;
        watchers.delete(resolve);
      }
      return messages;
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null) return;
      const closed = once(child, "close");
      child.kill("SIGKILL");
      await closed;
    },
  };
}
