// A process that owns a Signal connection and its daemon, and stores nothing: the test kills it in the middle of a message.
// Arguments: the settings as JSON. It prints a line when it is connected and one for each message.
import { signalChannel } from "@parley/contracts";
import { createSignal } from "../../src/channels/signal/index.ts";
import { TestHost } from "./channel-host.ts";

class UnfinishedHost extends TestHost {
  override accept(): Promise<never> {
    process.stdout.write("offered\n");
    return Promise.withResolvers<never>().promise;
  }
}

const settings = signalChannel.settings.parse(JSON.parse(process.argv[2] ?? "{}"));
const host = new UnfinishedHost();
const connected = createSignal("main", settings).connect?.(host, host.lease().lease);
await Promise.race([connected, host.untilLogged(/"connected"/)]);
process.stdout.write("connected\n");
await connected;
