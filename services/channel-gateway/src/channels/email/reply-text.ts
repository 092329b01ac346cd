// The text that the sender of a mail wrote, without quoted history and signature. Pure, and linear in the length of the text: parsers with
// expressions over whole mails take minutes for hostile ones.

export interface WrittenText {
  text: string;
  /** Quoted lines remain, because the sender answered between or below them. */
  quotes: boolean;
  /** The text contains a mail of somebody else, which the sender forwarded. */
  forwards: boolean;
}

/** No separator and no attribution is longer. */
const maxMarkerLength = 300;
const quotedLine = /^\s{0,3}>/;
const forwardMarker =
  /^(?:-{2,} ?(?:forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|messaggio inoltrato|doorgestuurd bericht|mensagem encaminhada) ?-{2,}|begin forwarded message:|anfang der weitergeleiteten nachricht:)$/i;
const originalMarker =
  /^-{2,} ?(?:original message|original appointment|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale|oorspronkelijk bericht|mensagem original|oprindelig meddelelse) ?-{2,}$/i;
const headerOf = {
  from: /^\*?(?:from|von|de|da|van|fra|från|od)\s?:\*?\s/i,
  sent: /^\*?(?:sent|date|gesendet|datum|envoyé|fecha|enviado|enviada|data|inviato|verzonden|dato|sendt|skickat)\s?:\*?\s/i,
  subject: /^\*?(?:subject|betreff|objet|asunto|oggetto|onderwerp|assunto|emne|ämne)\s?:\*?\s/i,
};
/** How many lines the header of a quoted mail has at most. */
const headerLines = 8;
const phoneSignature =
  /^(?:sent from my |sent from outlook|get outlook for |von meinem .* gesendet|envoyé de mon |enviado desde mi )/i;

/** Cuts history that nobody wrote anything below. A mail that is nothing but history remains whole. */
export function writtenText(mail: string): WrittenText {
  const lines = mail
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.trimEnd());
  const markers = lines.map((line) => (line.length > maxMarkerLength ? "" : line.trim()));
  const forwardAt = markers.findIndex((line) => forwardMarker.test(line));
  const forwards = forwardAt !== -1;
  const historyAt = forwards ? -1 : historyStart(markers);
  const kept = withoutTrailingQuote(historyAt === -1 ? lines : lines.slice(0, historyAt), markers);
  const own = forwards ? kept : withoutSignature(kept);
  const text = own.join("\n").trim();
  const result = text === "" ? mail.trim() : text;
  return { text: result, quotes: result.split("\n").some((line) => quotedLine.test(line)), forwards };
}

/** The line at which a mail program appended the previous mail with its header; -1: nowhere. */
function historyStart(markers: readonly string[]): number {
  return markers.findIndex((line, index) => {
    if (originalMarker.test(line)) return true;
    if (!headerOf.from.test(line)) return false;
    const following = markers.slice(index + 1, index + headerLines);
    return following.some((each) => headerOf.sent.test(each)) && following.some((each) => headerOf.subject.test(each));
  });
}

/** Without the quoted lines at the end and the attribution above them ("On Monday, Ann wrote:"), in any language. */
function withoutTrailingQuote(lines: readonly string[], markers: readonly string[]): readonly string[] {
  let end = lines.length;
  let quoted = 0;
  for (; end > 0; end -= 1) {
    const line = lines[end - 1] ?? "";
    if (quotedLine.test(line)) quoted += 1;
    else if (line.trim() !== "" && !/^_{5,}$/.test(line)) break;
  }
  if (quoted === 0) return lines.slice(0, end);
  // Mail programs wrap an attribution into at most three lines.
  for (let length = 1; length <= 3 && end - length >= 0; length += 1) {
    const attribution = markers.slice(end - length, end).join(" ");
    if (!/[:：]$/.test(attribution)) break;
    if (/[@\d]/.test(attribution) && (length === 3 || (markers[end - length - 1] ?? "") === ""))
      return lines.slice(0, end - length);
  }
  return lines.slice(0, end);
}

function withoutSignature(lines: readonly string[]): readonly string[] {
  const at = lines.findIndex((line) => line === "--");
  const own = at === -1 ? lines : lines.slice(0, at);
  const last = own.findLastIndex((line) => line.trim() !== "");
  const line = own[last] ?? "";
  return line.length <= maxMarkerLength && phoneSignature.test(line.trim()) ? own.slice(0, last) : own;
}

/** Cuts a text to `maxChars` UTF-16 units and states how many are missing. */
export function limitedText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const kept = text.slice(0, maxChars).toWellFormed();
  return `${kept}\n[${text.length - maxChars} more characters of this mail were left out]`;
}
