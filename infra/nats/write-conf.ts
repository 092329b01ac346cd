// Writes nats.conf beside this file. Argument: the namespace, where it is another one than the default of PARLEY_NAMESPACE.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { natsConf } from "./conf.ts";

const [namespace = "parley"] = process.argv.slice(2);
writeFileSync(fileURLToPath(new URL("nats.conf", import.meta.url)), natsConf(namespace));
