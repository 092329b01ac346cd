// Adds the TLS files of the environment to the PostgreSQL URL, as parameters that the driver reads. Pure except for reading files.
import { ConfigError, tlsFilesIn, type Environment } from "@parley/chassis";

const schemes: ReadonlySet<string> = new Set(["postgres:", "postgresql:"]);

/**
 * Adds the files of DATABASE_CA_FILE, DATABASE_CERT_FILE and DATABASE_KEY_FILE to a PostgreSQL URL. With any of them TLS is mandatory
 * and the server's certificate is verified. Throws ConfigError for another scheme and where the URL forbids TLS.
 */
export function withTls(databaseUrl: string, env: Environment): string {
  const files = tlsFilesIn(env, "DATABASE");
  // A path instead of a URL is the folder of a Unix socket.
  const url = URL.parse(databaseUrl);
  if (url !== null && url.protocol !== "socket:" && !schemes.has(url.protocol)) {
    throw new ConfigError(
      `environment: DATABASE_URL: unknown scheme "${url.protocol.slice(0, -1)}": use postgres://, with TLS and ?sslmode=verify-full`,
    );
  }
  const { caFile, certFile, keyFile } = files;
  if (caFile === undefined && certFile === undefined) return databaseUrl;
  if (url === null) throw new ConfigError("environment: DATABASE_CA_FILE needs a DATABASE_URL with a host");
  const mode = url.searchParams.get("sslmode");
  if (mode !== null && mode !== "require" && mode !== "verify-ca" && mode !== "verify-full") {
    throw new ConfigError(
      `environment: DATABASE_URL: sslmode=${mode} contradicts DATABASE_CA_FILE, which requires a verified certificate; use sslmode=verify-full`,
    );
  }
  url.searchParams.set("sslmode", "verify-full");
  if (caFile !== undefined) url.searchParams.set("sslrootcert", caFile);
  if (certFile !== undefined) url.searchParams.set("sslcert", certFile);
  if (keyFile !== undefined) url.searchParams.set("sslkey", keyFile);
  return url.href;
}

/** Whether TLS protects the connections of a URL; the driver never falls back to a plain one. */
export function isEncrypted(databaseUrl: string): boolean {
  const url = URL.parse(databaseUrl);
  if (url === null) return false;
  const { searchParams } = url;
  const mode = searchParams.get("sslmode");
  if (mode !== null) return mode !== "disable";
  const named = ["sslcert", "sslkey", "sslrootcert"].some((name) => (searchParams.get(name) ?? "") !== "");
  return (
    named || ["true", "1"].includes(searchParams.get("ssl") ?? "") || searchParams.get("sslnegotiation") === "direct"
  );
}
