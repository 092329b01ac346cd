// Markdown on the screen. A block whose source did not change is not rendered again while the text streams.
import type { Token, Tokens } from "marked";
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { CopyButton } from "../parts/copy-button.tsx";
import { blockHtml, blocks } from "./markdown.ts";
import { highlight } from "./highlight.ts";

/** Of texts that were shown before: rows come back while a person scrolls. The oldest is dropped. */
const known = new Map<string, { parsed: Token[]; html: Map<Token, string> }>();
const maxKnown = 500;

function knownOf(text: string): { parsed: Token[]; html: Map<Token, string> } {
  const found = known.get(text) ?? { parsed: blocks(text), html: new Map<Token, string>() };
  known.delete(text);
  known.set(text, found);
  const [oldest] = known.keys();
  if (known.size > maxKnown && oldest !== undefined) known.delete(oldest);
  return found;
}

/** `isLive`: the text grows; it is not remembered. */
export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }): JSX.Element {
  const { parsed, html } = useMemo(() => (isLive ? { parsed: blocks(text), html: null } : knownOf(text)), [text]);
  return (
    <div class="markdown">
      {parsed.map((block, index) =>
        isCode(block) ? (
          <Code key={index} code={block.text} language={block.lang ?? ""} />
        ) : (
          <Block key={index} block={block} raw={block.raw} known={html} />
        ),
      )}
    </div>
  );
}

function isCode(block: Token): block is Tokens.Code {
  return block.type === "code";
}

interface BlockProps {
  block: Token;
  raw: string;
  known: Map<Token, string> | null;
}

function Block({ block, raw, known: htmlOf }: BlockProps): JSX.Element {
  const html = useMemo(() => {
    const found = htmlOf?.get(block) ?? blockHtml(block);
    htmlOf?.set(block, found);
    return found;
  }, [raw]);
  // oxlint-disable-next-line react/no-danger -- sanitized
  return <div class="block" dir="auto" dangerouslySetInnerHTML={{ __html: html }} />;
}

function Code({ code, language }: { code: string; language: string }): JSX.Element {
  const html = useSignal<{ code: string; html: string } | null>(null);
  const name = /^[\w+#-]*/.exec(language)?.[0].toLowerCase() ?? "";
  useEffect(() => {
    let isCurrent = true;
    const show = async () => {
      const result = await highlight(code, name);
      if (isCurrent && result !== null) html.value = { code, html: result };
    };
    void show();
    return () => {
      isCurrent = false;
    };
  }, [code, name]);
  const ready = html.value?.code === code ? html.value.html : null;
  return (
    <div class="code">
      <div class="code-head">
        <span>{name === "" ? "text" : name}</span>
        <CopyButton text={() => code} />
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard */}
      <pre tabIndex={0} aria-label={`Code${name === "" ? "" : ` in ${name}`}`}>
        {ready === null ? <code>{code}</code> : <code dangerouslySetInnerHTML={{ __html: ready }} />}
      </pre>
    </div>
  );
}
