// The model calls of a turn, each with its tokens, cost and the request that was sent.
import type { Part } from "@parley/contracts";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { visible } from "../chat/markdown.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Fold } from "../parts/fold.tsx";
import { compact, duration, money } from "../parts/format.ts";
import { WhenLoaded, useLoad } from "../parts/load.tsx";

type Span = Result<"turnsTrace">["spans"][number];
type Sent = NonNullable<Result<"turnsRequest">["request"]>;

export function ModelCalls({ turnId, spans }: { turnId: string; spans: readonly Span[] }): JSX.Element | null {
  const calls = spans.filter(({ kind }) => kind === "model");
  if (calls.length === 0) return null;
  return (
    <section>
      <h2>Model calls</h2>
      <ol class="folds">
        {calls.map((span, index) => (
          <li key={span.step}>
            <Fold label={<CallLine number={index + 1} span={span} />}>
              {() => <Request turnId={turnId} step={span.step ?? 0} />}
            </Fold>
          </li>
        ))}
      </ol>
    </section>
  );
}

function CallLine({ number, span }: { number: number; span: Span }): JSX.Element {
  const { name, startedAt, endedAt, inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, costMicros = null } = span;
  const facts = [
    `${compact(inputTokens)} tokens in`,
    `${inputTokens === 0 ? 0 : Math.round((cacheReadTokens / inputTokens) * 100)} % from the cache`,
    `${compact(outputTokens)} out`,
    money({ micros: costMicros ?? 0, unpricedCalls: costMicros === null ? 1 : 0 }),
    ...(endedAt === null ? [] : [duration(Date.parse(endedAt) - Date.parse(startedAt))]),
  ];
  return (
    <>
      {number}. {visible(name)} <span class="muted">{facts.join(" · ")}</span>
    </>
  );
}

function Request({ turnId, step }: { turnId: string; step: number }): JSX.Element {
  const loaded = useLoad(() => call<"turnsRequest">("GET", `/api/turns/${turnId}/requests/${step}`), [turnId, step]);
  return (
    <WhenLoaded state={loaded}>
      {({ exact, note, request }) => (
        <>
          <p class={exact ? "muted" : "error-text"}>
            {exact
              ? "Exactly what was sent, as its recorded digest shows. The provider’s adapter writes it in the provider’s format and adds the contents of attachments."
              : `${request === null ? "The request cannot be shown" : "Not the exact request"}: ${note}`}
          </p>
          {request !== null && <Content request={request} />}
        </>
      )}
    </WhenLoaded>
  );
}

function Content({ request }: { request: Sent }): JSX.Element {
  const { system, tools, messages, parameters } = request;
  return (
    <>
      <p>
        <CopyButton label="Copy as JSON" text={() => JSON.stringify(request, null, 2)} />
      </p>
      <Fold label={`Parameters: ${Object.keys(parameters).length}`}>{() => <Text text={json(parameters)} />}</Fold>
      <Fold label={`System prompt: ${system.length.toLocaleString()} characters`}>{() => <Text text={system} />}</Fold>
      <Fold label={`Tools: ${tools.length}`}>
        {() =>
          tools.map(({ name, ...rest }) => (
            <Fold key={name} label={<code>{name}</code>}>
              {() => (
                <>
                  <Text text={rest.description} />
                  <Text text={json({ ...rest, description: undefined })} />
                </>
              )}
            </Fold>
          ))
        }
      </Fold>
      <Fold label={`Messages: ${messages.length}`}>
        {() =>
          messages.map(({ role, parts }, index) => (
            <div key={index} class="sent-message">
              <p class="sender">{role}</p>
              {parts.map((part, at) => (
                <PartText key={at} part={part} />
              ))}
            </div>
          ))
        }
      </Fold>
    </>
  );
}

function PartText({ part }: { part: Part }): JSX.Element {
  const { type, ...rest } = part;
  if (part.type === "text") return <Text text={part.text} />;
  return (
    <>
      <p class="muted">{type.replaceAll("_", " ")}</p>
      <Text text={json(rest)} />
    </>
  );
}

function json(value: object): string {
  return JSON.stringify(value, null, 2);
}

function Text({ text }: { text: string }): JSX.Element {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard
    <pre class="output" tabIndex={0} aria-label="Text">
      {visible(text)}
    </pre>
  );
}
