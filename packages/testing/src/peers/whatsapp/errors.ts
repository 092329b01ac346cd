// Errors in the form of the Graph API. Codes, titles and HTTP statuses: Cloud API error codes.
export interface GraphResult {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

const known: Readonly<Record<number, readonly [status: number, title: string]>> = {
  4: [400, "Application request limit reached"],
  33: [400, "Parameter value is not valid"],
  100: [400, "Invalid parameter"],
  131000: [500, "Something went wrong"],
  131008: [400, "Required parameter is missing"],
  131009: [400, "Parameter value is not valid"],
  131026: [400, "Message undeliverable"],
  131030: [400, "Recipient phone number not in allowed list"],
  131031: [403, "Business account locked"],
  131047: [400, "Re-engagement message"],
  131051: [400, "Unsupported message type"],
  131052: [400, "Media download error"],
  131053: [400, "Media upload error"],
  131056: [400, "(Business Account, Consumer Account) pair rate limit hit"],
  130429: [429, "Rate limit hit"],
  132000: [400, "Number of parameters does not match the expected number of params"],
  132001: [404, "Template name does not exist in the translation"],
  132018: [400, "There was an issue with the parameters in your template"],
  190: [401, "Invalid OAuth access token"],
  368: [403, "Temporarily blocked for policies violations"],
};

export function titleOf(code: number): string {
  return known[code]?.[1] ?? "Error";
}

export function graphError(code: number, details?: string, retryAfterSeconds?: number): GraphResult {
  const [status, title] = known[code] ?? [400, "Error"];
  return {
    status,
    body: {
      error: {
        message: `(#${code}) ${title}`,
        type: "OAuthException",
        code,
        error_data: { messaging_product: "whatsapp", details: details ?? title },
        fbtrace_id: "AbCdEfGhIjKlMnOpQrStUvW",
      },
    },
    ...(retryAfterSeconds === undefined ? {} : { headers: { "retry-after": String(retryAfterSeconds) } }),
  };
}
