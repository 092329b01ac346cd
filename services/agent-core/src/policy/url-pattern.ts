// URL patterns in rules: `https://example.com/*`, `*.example.com`, `example.com/docs/*`. Scheme, host and path are matched
// separately, so that a `*` in the host never matches part of the path. Pure.
import { compileText } from "./pattern.ts";

export type UrlMatcher = (url: URL, purpose: "allow" | "forbid") => boolean;

/**
 * Compiles a URL pattern. Allow rules match strictly: no URL with a user name, which can deceive readers, and no port that the rule
 * does not name. Other rules match every port.
 */
export function compileUrl(pattern: string): UrlMatcher {
  const parts = /^(?:([a-z*][a-z0-9+.*-]*):\/\/)?([^/]*)(\/.*)?$/is.exec(pattern);
  if (parts === null) return () => false;
  const [, scheme, host = "", path] = parts;
  const isScheme = scheme === undefined ? null : compileText(scheme.toLowerCase());
  const isHost = compileText(host.toLowerCase());
  const isPath = path === undefined ? null : compileText(path);
  return (url, purpose) => {
    const name = url.protocol.slice(0, -1);
    if (isScheme === null ? name !== "http" && name !== "https" : !isScheme(name)) return false;
    if (isPath !== null && !isPath(url.pathname + url.search)) return false;
    if (purpose === "allow") return url.username === "" && url.password === "" && isHost(url.host);
    return isHost(url.host) || isHost(url.hostname) || isHost(url.hostname.replace(/\.$/, ""));
  };
}
