// The environment variables for the files of a TLS link: `<prefix>_CA_FILE`, `<prefix>_CERT_FILE` and `<prefix>_KEY_FILE`.
import { readTlsFiles, type TlsFiles } from "@parley/bus";
import { errorMessage } from "@parley/contracts";
import { ConfigError } from "./errors.ts";

/**
 * The files that the environment names for a link, `{}` for none. Each file is read once, so that a wrong path throws a ConfigError that
 * names the link's variables. A certificate needs its key and vice versa.
 */
export function tlsFilesIn(env: Readonly<Record<string, string | undefined>>, prefix: string): TlsFiles {
  const named = (suffix: string): string | undefined => env[`${prefix}_${suffix}`] || undefined;
  const [caFile, certFile, keyFile] = [named("CA_FILE"), named("CERT_FILE"), named("KEY_FILE")];
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new ConfigError(
      `environment: ${prefix}_CERT_FILE and ${prefix}_KEY_FILE must be set together; one of them is not set`,
    );
  }
  const files: TlsFiles = {
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
  };
  try {
    readTlsFiles(files);
  } catch (error) {
    throw new ConfigError(`environment: ${prefix}_CA_FILE, _CERT_FILE, _KEY_FILE: ${errorMessage(error)}`);
  }
  return files;
}
