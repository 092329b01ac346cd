// The version of this build.

import { readFileSync } from "node:fs";

export function ownVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  if (typeof manifest === "object" && manifest !== null && "version" in manifest) return String(manifest.version);
  return "unknown";
}
