// Markdown on the screen. A block whose source did not change is not rendered again while the text streams.
import type { Token, Tokens } from "marked";
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { Icon } from "../parts/icons.tsx";
import { blockHtml, blocks } from "./markdown.ts";
import { highlight } from "./highlight.ts";

export function Markdown({ text }: { text: string }): JSX.Element {
  const parsed = useMemo(() => blocks(text), [text]);
  return (
    <div class="markdown">
      {parsed.map((block, index) =>
        isCode(block) ? (
          <Code key={index} code={block.text} language={block.lang ?? ""} />
        ) : (
          <Block key={index} block={block} raw={block.raw} />
        ),
      )}
    </div>
  );
}

function isCode(block: Token): block is Tokens.Code {
  return block.type === "code";
}

function Block({ block, raw }: { block: Token; raw: string }): JSX.Element {
  const html = useMemo(() => blockHtml(block), [raw]);
  // oxlint-disable-next-line react/no-danger -- sanitized
  return <div class="block" dir="auto" dangerouslySetInnerHTML={{ __html: html }} />;
}

const copiedMs = 1_500;

function Code({ code, language }: { code: string; language: string }): JSX.Element {
  const html = useSignal<{ code: string; html: string } | null>(null);
  const copied = useSignal(false);
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
  const copy = async () => {
    await navigator.clipboard.writeText(code);
    copied.value = true;
    setTimeout(() => (copied.value = false), copiedMs);
  };
  const ready = html.value?.code === code ? html.value.html : null;
  return (
    <div class="code">
      <div class="code-head">
        <span>{name === "" ? "text" : name}</span>
        <button type="button" class="link-button" onClick={() => void copy()}>
          <Icon name={copied.value ? "check" : "copy"} /> {copied.value ? "Copied" : "Copy"}
        </button>
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard */}
      <pre tabIndex={0} aria-label={`Code${name === "" ? "" : ` in ${name}`}`}>
        {ready === null ? <code>{code}</code> : <code dangerouslySetInnerHTML={{ __html: ready }} />}
      </pre>
    </div>
  );
}
