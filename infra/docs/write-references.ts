// Writes the generated pages of docs/reference, except the HTTP API, which its test writes from a running gateway.
import { writeFileSync } from "node:fs";
import { cliDocument } from "./cli-document.ts";
import { eventsDocument } from "./events-document.ts";
import { settingsDocument } from "./settings-document.ts";

const folder = new URL("../../docs/reference/", import.meta.url);
writeFileSync(new URL("cli.md", folder), cliDocument());
writeFileSync(new URL("settings.md", folder), settingsDocument());
writeFileSync(new URL("websocket.md", folder), eventsDocument());
