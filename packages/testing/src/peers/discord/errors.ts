// Results of the REST API, and errors in Discord's form.

export interface ApiResult {
  status: number;
  /** Undefined: no content. */
  body?: unknown;
}

interface FieldError {
  code: string;
  message: string;
}

export function ok(body: unknown): ApiResult {
  return { status: 200, body };
}

export const noContent: ApiResult = { status: 204 };

export function apiError(status: number, code: number, message: string): ApiResult {
  return { status, body: { message, code } };
}

/** Error 50035: the fields with their problems. */
export function invalidForm(errors: Record<string, FieldError>): ApiResult {
  const fields: Record<string, unknown> = {};
  for (const [field, error] of Object.entries(errors)) fields[field] = { _errors: [error] };
  return { status: 400, body: { message: "Invalid Form Body", code: 50_035, errors: fields } };
}

export const unknownChannel = apiError(404, 10_003, "Unknown Channel");
export const unknownMessage = apiError(404, 10_008, "Unknown Message");
export const unknownInteraction = apiError(404, 10_062, "Unknown interaction");
