// A Discord adapter that is connected to the stand-in, with the host that receives its messages.
import { discordChannel } from "@parley/contracts";
import { startDiscordPeer, type DiscordPeer, type DiscordPeerOptions } from "@parley/testing";
import type { ChannelAdapter } from "../../src/channels/channel.ts";
import { createDiscord } from "../../src/channels/discord/index.ts";
import { TestHost } from "./channel-host.ts";

export function discordAdapter(peer: DiscordPeer, more: object = {}, token = peer.token): ChannelAdapter {
  const settings = { token_env: "PARLEY_CHANNEL_D", api_root: peer.url, groups: [peer.channelId], ...more };
  return createDiscord("main", discordChannel.settings.parse(settings), { token });
}

/** Holds the connection as the gateway does: connects again with the stored cursor until the lease is lost. */
export function keepConnected(host: TestHost, adapter: ChannelAdapter): { lose: () => void; ended: Promise<void> } {
  const stop = new AbortController();
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const { lease, lose } = host.lease();
      stop.signal.addEventListener("abort", lose, { once: true });
      await adapter
        .connect?.(host, lease)
        .catch((error: unknown) => host.log.error({ error: String(error) }, "failed"));
    }
  };
  return { lose: () => stop.abort(), ended: run() };
}

export async function connectedDiscord(options: DiscordPeerOptions = {}, more: object = {}) {
  const peer = await startDiscordPeer(options);
  const host = new TestHost();
  const adapter = discordAdapter(peer, more);
  const held = keepConnected(host, adapter);
  await host.untilLogged(/"connected"/);
  return {
    peer,
    host,
    adapter,
    ...held,
    async [Symbol.asyncDispose]() {
      held.lose();
      await held.ended;
      await peer.close();
    },
  };
}
