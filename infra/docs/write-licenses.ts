// Writes docs/licenses.md.
import { writeFileSync } from "node:fs";
import { licensesDocument, shippedPackages } from "./licenses.ts";

writeFileSync(new URL("../../docs/licenses.md", import.meta.url), licensesDocument(shippedPackages()));
