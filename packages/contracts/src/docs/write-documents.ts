import { writeFileSync } from "node:fs";
import { channelsDocument } from "./channels.ts";
import { protocolDocument } from "./protocol.ts";

const docs = new URL("../../../../docs/", import.meta.url);
writeFileSync(new URL("protocol.md", docs), protocolDocument());
writeFileSync(new URL("channels.md", docs), channelsDocument());
