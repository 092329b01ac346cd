// A Discord adapter that is connected to the fake, with the host that receives its messages.
import { setTimeout as delay } from "node:timers/promises";
import { discordChannel } from "@parley/contracts";
import { startDiscordPeer, type DiscordPeer, type DiscordPeerOptions } from "@parley/testing";
import type { ChannelAdapter } from "../../src/channels/channel.ts";
import { createDiscord } from "../../src/channels/discord/index.ts";
import { TestHost } from "./channel-host.ts";

export function discordAdapter(peer: DiscordPeer, more: object = {}, token = peer.token): ChannelAdapter {
  const settings = { token_env: "PARLEY_CHANNEL_D", api_root: peer.url, groups: [peer.channelId], ...more };
  return createDiscord("main", discordChannel.settings.parse(settings), { token });
}

const reconnectPauseMs = 50;

export interface HeldConnection extends AsyncDisposable {
  lose: () => void;
  ended: Promise<void>;
}

/** Holds a connection as the gateway does: connects again with the stored cursor until the lease is lost. */
export function keepConnected(host: TestHost, adapter: ChannelAdapter, slot = 0): HeldConnection {
  const stop = new AbortController();
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const { lease, lose } = host.lease();
      stop.signal.addEventListener("abort", lose, { once: true });
      try {
        await adapter.connect?.(host, { ...lease, slot });
      } catch (error) {
        host.log.error({ error: String(error) }, "failed");
        // Without a pause, a test that has failed and closed its peer would keep the process busy.
        await delay(reconnectPauseMs, undefined, { signal: stop.signal }).catch(() => {});
      }
    }
  };
  const lose = (): void => stop.abort();
  const ended = run();
  return {
    lose,
    ended,
    async [Symbol.asyncDispose]() {
      lose();
      await ended;
    },
  };
}

export interface ConnectedDiscord extends HeldConnection {
  peer: DiscordPeer;
  host: TestHost;
  adapter: ChannelAdapter;
}

export async function connectedDiscord(options: DiscordPeerOptions = {}, more: object = {}): Promise<ConnectedDiscord> {
  const peer = await startDiscordPeer(options);
  const host = new TestHost();
  const adapter = discordAdapter(peer, more);
  const held = keepConnected(host, adapter);
  try {
    await host.untilLogged(/"connected"/);
  } catch (error) {
    await held[Symbol.asyncDispose]();
    await peer.close();
    throw error;
  }
  return {
    peer,
    host,
    adapter,
    lose: held.lose,
    ended: held.ended,
    async [Symbol.asyncDispose]() {
      await held[Symbol.asyncDispose]();
      await peer.close();
    },
  };
}
