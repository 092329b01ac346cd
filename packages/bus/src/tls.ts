// TLS of a link to a server: its files, and explanations of failed handshakes. It opens no connection.
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { omitUndefined } from "@parley/kit";

/** Paths of PEM files. Any of them requires TLS for the link. */
export interface TlsFiles {
  /** The CA that signed the server's certificate; without it the CAs that Node trusts. */
  caFile?: string;
  /** This client's certificate and its key, for servers that verify clients. */
  certFile?: string;
  keyFile?: string;
}

/** The PEM texts of `TlsFiles`, as Node's TLS expects them. */
export interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
}

/** Reads the files. Throws reading and parsing errors with the path in the message. */
export function readTlsFiles({ caFile, certFile, keyFile }: TlsFiles): TlsMaterial {
  return omitUndefined({
    ca: caFile && readCertificate(caFile),
    cert: certFile && readCertificate(certFile),
    key: keyFile && readFileSync(keyFile, "utf8"),
  });
}

function readCertificate(path: string): string {
  const text = readFileSync(path, "utf8");
  if (!isCertificate(text)) throw new Error(`${path} is not a PEM certificate`);
  return text;
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).serialNumber !== "";
  } catch {
    return false;
  }
}

const unknownIssuer = /^(?:UNABLE_TO_\w+|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|CERT_UNTRUSTED)$/;
const otherCertificateFault = /^(?:CERT_\w+|ERR_TLS_CERT_ALTNAME_INVALID)$/;

/**
 * Why a link cannot be opened, as one clause without secrets. `caVariable` is the environment variable of the CA file of
 * this link; the clause contains it when the issuer of the server's certificate is not trusted.
 */
export function explainLinkFailure(error: unknown, caVariable: string): string {
  const code = codeOf(error);
  const message = messageOf(error);
  if (unknownIssuer.test(code)) {
    return `the server's certificate cannot be verified (${message}): set ${caVariable} to the file of the CA that signed it`;
  }
  if (otherCertificateFault.test(code)) return `the server's certificate cannot be verified (${message})`;
  return message;
}

/** The code of the innermost error that has one. */
function codeOf(error: unknown): string {
  let code = "";
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") code = at.code;
  }
  return code;
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return messageOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? codeOf(error) || error.name : error.message;
}
