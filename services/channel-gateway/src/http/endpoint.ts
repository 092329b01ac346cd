// Routes as data: the same schemas validate requests and generate /openapi.json.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ApiScope } from "@parley/contracts";
import type { z } from "zod";
import { invalid } from "./errors.ts";

type MaybeSchema = z.ZodType | undefined;
type Parsed<S extends MaybeSchema> = S extends z.ZodType ? z.infer<S> : undefined;

export interface AnswerDoc {
  description: string;
  /** JSON unless `contentType` is set. */
  schema?: z.ZodType;
  contentType?: string;
}

export interface EndpointSpec<P extends MaybeSchema, Q extends MaybeSchema, B extends MaybeSchema> {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** In fastify's form: `/api/turns/:id`. */
  url: string;
  summary: string;
  description?: string;
  /** Served without a token. */
  open?: boolean;
  /** What a token needs; null: the route checks for itself. Default: `read` for GET, else `admin`. */
  scope?: ApiScope | null;
  params?: P;
  query?: Q;
  body?: B;
  /** The documented body when the handler parses it itself. */
  bodyDoc?: z.ZodType;
  headers?: Readonly<Record<string, string>>;
  /** Default: that of the listener. */
  bodyLimitBytes?: number;
  answers: Readonly<Record<number, AnswerDoc>>;
}

export interface Call<P extends MaybeSchema, Q extends MaybeSchema, B extends MaybeSchema> {
  params: Parsed<P>;
  query: Parsed<Q>;
  body: Parsed<B>;
  request: FastifyRequest;
  reply: FastifyReply;
}

export type EndpointDoc = EndpointSpec<MaybeSchema, MaybeSchema, MaybeSchema>;

/** Registers routes and collects their documentation. */
export class Endpoints {
  readonly #app: FastifyInstance;
  readonly #docs: EndpointDoc[] = [];

  constructor(app: FastifyInstance) {
    this.#app = app;
  }

  get docs(): readonly EndpointDoc[] {
    return this.#docs;
  }

  /** Documents a route that is registered elsewhere. */
  document(spec: EndpointDoc): void {
    this.#docs.push(spec);
  }

  /** The handler returns the response body, or undefined when it has sent the response itself. */
  add<P extends MaybeSchema = undefined, Q extends MaybeSchema = undefined, B extends MaybeSchema = undefined>(
    spec: EndpointSpec<P, Q, B>,
    handle: (call: Call<P, Q, B>) => Promise<unknown>,
  ): void {
    this.#docs.push(spec);
    this.#app.route({
      method: spec.method,
      url: spec.url,
      config: { open: spec.open ?? false, ...(spec.scope === undefined ? {} : { scope: spec.scope }) },
      ...(spec.bodyLimitBytes === undefined ? {} : { bodyLimit: spec.bodyLimitBytes }),
      handler: async (request, reply) => {
        const answer = await handle({
          params: check(spec.params, request.params, "path"),
          query: check(spec.query, request.query, "query"),
          body: check(spec.body, request.body ?? {}, "body"),
          request,
          reply,
        });
        return reply.sent || answer === undefined ? reply : reply.send(answer);
      },
    });
  }
}

function check<S extends MaybeSchema>(schema: S | undefined, value: unknown, where: string): Parsed<S> {
  if (schema === undefined) return undefined as Parsed<S>;
  const result = schema.safeParse(value);
  if (!result.success) throw invalid(result.error, where);
  return result.data as Parsed<S>;
}
