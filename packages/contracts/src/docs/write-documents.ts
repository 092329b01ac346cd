// Writes the documents that are generated from the contracts; part of `npm run docs:references`.
import { writeFileSync } from "node:fs";
import { channelsDocument } from "./channels.ts";
import { protocolDocument } from "./protocol.ts";

const docsFolder = new URL("../../../../docs/", import.meta.url);
writeFileSync(new URL("protocol.md", docsFolder), protocolDocument());
writeFileSync(new URL("channels.md", docsFolder), channelsDocument());
