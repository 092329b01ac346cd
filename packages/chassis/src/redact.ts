// Removes secrets from texts; pure.

const secretPatterns = [
  /\bsk-[A-Za-z0-9_-]{12,}/g,
  /\bBearer\s+[A-Za-z0-9._~+/=-]{12,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  // A bot token of digits, a colon and letters, also inside a URL.
  /(?<!\d)\d{6,}:[A-Za-z0-9_-]{30,}/g,
  // The password of an address. Not beyond the end of a JSON string: that would join two fields of a line.
  /(?<=:\/\/[^\s/:@"]*:)(?:[^\s/@"\\]|\\.)+(?=@)/g,
];

/** A secret as it is and as it is within a JSON string. */
function formsOf(secret: string): readonly string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  return escaped === secret ? [secret] : [escaped, secret];
}

/** Replaces everything in a line that looks like a secret or is one of `secrets`. */
export function redactSecrets(line: string, secrets: readonly string[] = []): string {
  let clean = line;
  for (const secret of secrets)
    if (secret.length >= 8) for (const form of formsOf(secret)) clean = clean.replaceAll(form, "[secret]");
  for (const pattern of secretPatterns) clean = clean.replace(pattern, "[secret]");
  return clean;
}
