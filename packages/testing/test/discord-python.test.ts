// The fake of Discord is held to what discord.py of Debian expects, a second client that was not written for it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { sharedCacheDir, suitePackages, suitePrograms } from "@parley/local";
import { startDiscordPeer } from "../src/peers/discord/index.ts";

const programs = await suitePrograms({ name: "discord", ...suitePackages.discord, cacheDir: sharedCacheDir }).catch(
  (error: unknown) => `discord.py of Debian is not available: ${String(error)}`,
);

test(
  "answers discord.py with messages, files and reactions, and resumes its session",
  { skip: typeof programs === "string" ? programs : false },
  async (t) => {
    assert.ok(typeof programs === "object");
    t.diagnostic(`python3-discord ${programs.version("python3-discord")}`);
    await using peer = await startDiscordPeer();
    const script = join(import.meta.dirname, "fixtures/discord_bot.py");
    const mounts = { readOnly: [script] };
    const [command, args] = programs.command("/usr/bin/python3", [script, String(peer.port), peer.token], mounts);
    const bot = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] });
    const ended = once(bot, "exit");
    try {
      await peer.until("the connection", () => (peer.gateway.connected === 1 ? true : null));
      const mention = peer.say(`<@${peer.bot.id}> hello`, { channel: peer.channelId });
      peer.say("direct", { files: [{ name: "a.txt", mediaType: "text/plain", content: Buffer.from("content") }] });
      const edited = () => peer.sent.filter(({ editedAt }) => editedAt !== null);
      await peer.until("two edited replies", () => (edited().length === 2 ? true : null));
      const reply = peer.sent.find(({ replyToId }) => replyToId === mention);
      assert.equal(reply?.content, "you said @parley hello!");
      const direct = peer.sent.find(({ channelId }) => channelId === peer.directChannelId());
      assert.equal(direct?.files[0]?.content.toString(), "content");
      peer.gateway.disconnect("reconnect");
      const missed = peer.say("while away");
      await peer.until("the reaction", () => (peer.message(missed)?.reactions.has("👀") === true ? true : null));
      assert.deepEqual([peer.gateway.resumed, peer.sent.length], [1, 3]);
    } finally {
      bot.kill("SIGKILL");
      await ended;
    }
  },
);
